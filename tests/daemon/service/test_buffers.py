"""Open documents: the latest text wins, and nothing of a gone editor stays."""

from pathlib import Path

from laguna_daemon.service.buffers import Buffers, texts

ROOT = Path("/repo")


def test_the_text_changed_last_wins_and_the_conflict_is_named() -> None:
    buffers = Buffers()
    buffers.set("vim", ROOT / "a.py", "old", 1)
    buffers.set("code", ROOT / "a.py", "new", 7)
    assert texts(buffers.under(ROOT)) == {"a.py": "new"}
    assert buffers.conflicts(ROOT) == ("a.py",)
    buffers.set("vim", ROOT / "a.py", "newest", 2)
    assert texts(buffers.under(ROOT)) == {"a.py": "newest"}


def test_the_same_text_in_two_editors_is_no_conflict() -> None:
    buffers = Buffers()
    buffers.set("vim", ROOT / "a.py", "same", 1)
    buffers.set("code", ROOT / "a.py", "same", 1)
    assert buffers.conflicts(ROOT) == ()


def test_a_closed_document_or_a_gone_editor_leaves_the_other_ones_text() -> None:
    buffers = Buffers()
    buffers.set("vim", ROOT / "a.py", "vim's", 1)
    buffers.set("code", ROOT / "a.py", "code's", 1)
    buffers.close("code", ROOT / "a.py")
    assert texts(buffers.under(ROOT)) == {"a.py": "vim's"}
    buffers.close("code", ROOT / "never opened")
    buffers.drop("vim")
    assert buffers.under(ROOT) == {}


def test_only_files_below_the_root_count() -> None:
    buffers = Buffers()
    buffers.set("vim", Path("/repository/a.py"), "beside, not below", 1)
    buffers.set("vim", ROOT / "sub" / "b.py", "below", 1)
    assert texts(buffers.under(ROOT)) == {"sub/b.py": "below"}
