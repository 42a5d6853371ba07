"""The frozen prefix: ordered, packed, content-addressed, and the same again after a restart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from laguna_context import frames
from laguna_context.history import change_weights, stable_first
from laguna_context.idcache import Store
from laguna_context.packing import importance, name_rest, pack
from laguna_context.snapshot import Piece, freeze, restore
from laguna_context.tokens import Ids, Tokenizer
from laguna_context.workspace import Budget
from support import view
from support.repositories import git, repository, write


def piece(tokenizer: Tokenizer, path: str, text: str) -> Piece:
    frame = frames.document(path, text)
    return Piece(path, frames.text_hash(text), "v", frame.id, tokenizer.encode(frame.text))


def test_a_snapshot_is_its_documents_in_order(tokenizer: Tokenizer) -> None:
    texts = {"a.py": "a = 1\n", "b.py": "  b", "c": "\n\n"}
    found = freeze([piece(tokenizer, path, text) for path, text in texts.items()], ["x.bin"], {"x.bin": "path"})
    assert tokenizer.decode(found.ids).decode() == "".join(frames.document(p, t).text for p, t in texts.items())
    for part in found.parts:
        assert found.text(part, tokenizer) == texts[part.path]
    assert [part.path for part in found.parts] == list(texts)
    assert not found.ids.flags.writeable


def test_the_id_of_a_snapshot_is_of_its_ids(tokenizer: Tokenizer) -> None:
    one, two = piece(tokenizer, "a", "1"), piece(tokenizer, "b", "2")
    assert freeze([one, two], [], {}).id == freeze([one, two], [], {}).id
    assert freeze([one, two], [], {}).id != freeze([two, one], [], {}).id


def test_a_kept_snapshot_is_taken_up_only_if_it_is_whole(tokenizer: Tokenizer) -> None:
    found = freeze([piece(tokenizer, "a", "text")], [], {})
    again = restore(found.body(), found.ids)
    assert again is not None and again.parts == found.parts
    assert restore(found.body(), found.ids[:-1]) is None
    assert restore({"id": found.id}, found.ids) is None


def test_history_puts_what_changes_last(tmp_path: Path, open_workspace: object, tokenizer: Tokenizer) -> None:
    files = {"old.py": "o = 1\n", "busy.py": "b = 0\n", "mid.py": "m = 1\n", "zz.py": "z = 1\n"}
    root = repository(tmp_path / "repo", files, commit=True)
    for number in range(3):
        write(root, {"busy.py": f"b = {number + 1}\n", **({"mid.py": "m = 2\n"} if number == 0 else {})})
        git(root, "commit", "-qam", "change")
    weights = change_weights(root)
    assert weights["busy.py"] > weights["mid.py"] > weights["old.py"] == weights["zz.py"] > 0
    space = open_workspace(root)  # type: ignore[operator]
    assert [part.path for part in space.prompt("?").documents] == ["old.py", "zz.py", "mid.py", "busy.py"]


def test_a_long_file_that_changes_as_often_stands_before_a_short_one() -> None:
    weights = {"CHANGES.rst": 2.0, "ci.yml": 2.0, "old.py": 0.0}
    sizes = {"CHANGES.rst": 25_000, "ci.yml": 500, "old.py": 100}
    order = sorted(sizes, key=lambda path: stable_first(path, weights, sizes[path]))
    assert order == ["old.py", "CHANGES.rst", "ci.yml"]


def test_history_of_a_folder_below_the_top_and_of_none(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"sub/a.py": "a\n", "b.py": "b\n"}, commit=True)
    assert set(change_weights(root / "sub")) == {"a.py"}
    assert change_weights(repository(tmp_path / "empty")) == {}
    assert change_weights(tmp_path) == {}


def test_the_second_run_opens_no_file(tmp_path: Path, open_workspace: object) -> None:
    root = repository(tmp_path / "repo", {f"m{i}.py": f"x = {i}\n" * 9 for i in range(30)}, commit=True)
    settle(root)
    one = open_workspace(root)  # type: ignore[operator]
    first = one.prompt("?")
    one.close()
    two = open_workspace(root)  # type: ignore[operator]
    second = two.prompt("?")
    assert (one.files_opened, two.files_opened) == (30, 0)
    assert second.ids.tolist() == first.ids.tolist()
    assert second.identity == first.identity


def test_after_a_restart_only_what_changed_is_read(tmp_path: Path, open_workspace: object) -> None:
    root = repository(tmp_path / "repo", {f"m{i}.py": f"x = {i}\n" * 9 for i in range(30)}, commit=True)
    settle(root)
    one = open_workspace(root)  # type: ignore[operator]
    write(root, {"m3.py": "edited = 1\n"})
    one.changed(["m3.py"])
    first = one.prompt("?")
    one.close()
    write(root, {"m4.py": "later = 1\n", "new.py": "n = 1\n"})
    (root / "m5.py").unlink()
    two = open_workspace(root)  # type: ignore[operator]
    second = two.prompt("?")
    shared = first.prefix_tokens + first.overlay_tokens
    assert second.ids[:shared].tolist() == first.ids[:shared].tolist()
    assert second.overlay_seq == first.overlay_seq + 3
    assert two.files_opened <= 3


def test_a_damaged_cache_costs_time_only(tmp_path: Path, open_workspace: object) -> None:
    root = repository(tmp_path / "repo", {"a.py": "a = 1\n"}, commit=True)
    one = open_workspace(root)  # type: ignore[operator]
    first = one.prompt("?")
    one.close()
    (tmp_path / "cache" / "ids.sqlite").write_bytes(b"no database" * 100)
    two = open_workspace(root)  # type: ignore[operator]
    assert two.prompt("?").ids.tolist() == first.ids.tolist()
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, not a folder")
    three = open_workspace(root, cache_dir=blocked / "cache")  # type: ignore[operator]
    assert three.prompt("?").ids.tolist() == first.ids.tolist()


def test_the_cache_is_private_and_capped(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache", cap=40_000)
    for number in range(20):
        store.put_ids({bytes([number]) * 32: np.arange(1000, dtype=np.uint32)})
    store.close()
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "cache").iterdir())
    again = Store(tmp_path / "cache")
    kept = again.get_ids([bytes([number]) * 32 for number in range(20)])
    assert 0 < len(kept) <= 10
    assert all(ids.tolist() == list(range(1000)) for ids in kept.values())


def test_files_that_do_not_fit_are_named_and_folders_counted(
    tmp_path: Path, open_workspace: object, tokenizer: Tokenizer
) -> None:
    files = {f"pkg{i}/mod{j}.py": f"value = {i * j}\n" * 30 for i in range(12) for j in range(40)}
    root = repository(tmp_path / "repo", {**files, "README.md": "# Read me\n"}, commit=True)
    space = open_workspace(root, Budget(context=8000, output=500, task=500, overlay=600))  # type: ignore[operator]
    manifest = space.manifest()
    assert {file.path for file in manifest.files} == {*files, "README.md"}
    assert set(manifest.tiers) == {"full", "path", "folder"} or set(manifest.tiers) == {"full", "folder"}
    prompt = space.prompt("?")
    assert prompt.ids.size <= 7500
    found = view.read(tokenizer.decode(prompt.ids).decode())
    assert "README.md" in found.files
    counted = sum(
        int(line.split(" (")[1].split()[0]) for line in found.listing.splitlines() if line.endswith(" files)")
    )
    named = sum(not line.endswith(" files)") for line in found.listing.splitlines())
    assert counted + named + len(found.files) == len(files) + 1


def test_a_folder_count_is_kept_current(tmp_path: Path, open_workspace: object, tokenizer: Tokenizer) -> None:
    files = {f"data/d{i}.csv": "1,2,3\n" * 900 for i in range(40)}
    root = repository(tmp_path / "repo", {**files, "a.py": "a = 1\n"}, commit=True)
    space = open_workspace(root, Budget(context=2500, output=200, task=200, overlay=300))  # type: ignore[operator]
    before = view.read(tokenizer.decode(space.prompt("?").ids).decode()).listing
    assert before.splitlines() == ["data/ (40 files)"]
    (root / "data/d7.csv").unlink()
    write(root, {"data/d8.csv": "9\n" * 900})
    space.changed(["data/d7.csv", "data/d8.csv"])
    found = view.read(tokenizer.decode(space.prompt("?").ids).decode())
    assert found.listing.splitlines() == ["data/ (39 files)"]
    assert found.kinds == [("whole", "./")]


def test_names_stay_within_their_room() -> None:
    paths = [f"a{i % 50}/b{i % 7}/file_{i}.txt" for i in range(5000)]

    def count(text: str) -> int:
        return len(text) // 3

    for room in (40, 400, 4000, 40_000):
        lines, tiers = name_rest(paths, room, count)
        assert count("\n".join(lines)) <= room
        assert tiers.keys() == set(paths)
    assert set(tiers.values()) == {"path"}


def test_rank_prefers_the_users_order_then_source() -> None:
    key = importance(["docs/"], {"b.py": 0.5})
    paths = ["a.py", "b.py", "docs/x.md", "tests/test_a.py", "package-lock.json", "README.md"]
    ranked = sorted(paths, key=lambda path: key(path, 100))
    assert ranked == [
        "docs/x.md",
        "README.md",
        "b.py",
        "a.py",
        "tests/test_a.py",
        "package-lock.json",
    ]


def test_of_two_files_alike_the_shorter_comes_first() -> None:
    key = importance([], {})
    assert key("b.py", 1000) < key("a.py", 90_000)
    assert key("b.py", 1000) < key("README.rst", 90_000)


def test_only_what_can_fit_is_asked_for() -> None:
    asked: list[str] = []

    def ids_of(paths: Sequence[str]) -> Mapping[str, Ids]:
        asked.extend(paths)
        return {path: np.zeros(100, dtype=np.uint32) for path in paths}

    candidates = [(f"f{i}", 300) for i in range(10_000)]
    found = pack(candidates, [], 2000, ids_of, lambda text: len(text) // 3)
    assert len(found.full) >= 15
    assert len(asked) < 400
    assert len(found.full) + len(found.tiers) == 10_000


def settle(root: Path) -> None:
    """Make files old enough to be remembered by their stat data."""
    import time

    time.sleep(0.15)


@pytest.mark.parametrize("content", [{}, {"only.bin": b"\0\0\0"}])
def test_a_repository_without_text(tmp_path: Path, open_workspace: object, content: dict[str, bytes]) -> None:
    root = repository(tmp_path / "repo", content, commit=True)
    space = open_workspace(root)  # type: ignore[operator]
    prompt = space.prompt("?")
    assert prompt.ids.size > 0
    assert space.manifest().skipped == ({"binary": 1} if content else {})
