"""Properties that hold for any tree, any encoding, any line ending and any answer."""

from __future__ import annotations

import codecs
import os
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laguna_daemon import edits
from laguna_daemon.edits.diff import changes_between
from laguna_daemon.edits.lines import content, ending, split_lines
from laguna_daemon.edits.safety import normalise
from laguna_daemon.edits.textedits import edits_between
from support.edit_cases import git
from support.editor import apply_to_text
from support.trees import read_tree, write_tree

ENDINGS = st.sampled_from(["\n", "\r\n", "\r"])
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0", exclude_categories=("Cs",)), max_size=12)
LINES = st.lists(st.tuples(WORDS, ENDINGS), max_size=12)
ENCODINGS = st.sampled_from(["utf-8", "bom", "utf-16-le", "utf-16-be", "utf-32-le"])
MARKS = {
    "bom": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
}
NAMES = st.sampled_from(["a.txt", "b c.txt", "d/e.txt", "d/f/g.txt", "ü/ß.txt", "h.bin"])
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="laguna-edits-", dir=MEMORY)


@st.composite
def file_bytes(draw: st.DrawFn) -> bytes:
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=60))
    text = "".join(word + end for word, end in draw(LINES))
    if draw(st.booleans()):
        text = content(text)
    encoding = draw(ENCODINGS)
    return MARKS.get(encoding, b"") + text.encode("utf-8" if encoding == "bom" else encoding)


@st.composite
def blocks(draw: st.DrawFn, tree: dict[str, bytes]) -> list[edits.Block]:
    """Blocks that often match: searches are taken from the files."""
    made: list[edits.Block] = []
    for path in draw(st.lists(NAMES, min_size=1, max_size=5)):
        kind = draw(st.integers(0, 5))
        new = tuple(draw(st.lists(WORDS, max_size=4)))
        if kind == 0:
            made.append(edits.Create(path, "".join(f"{line}\n" for line in new)))
        elif kind == 1:
            made.append(edits.Delete(path))
        elif kind == 2:
            made.append(edits.Rename(path, draw(NAMES)))
        else:
            lines = [content(line) for line in split_lines(_decoded(tree.get(path, b"")))]
            start = draw(st.integers(0, max(0, len(lines) - 1)))
            search = tuple(lines[start : start + draw(st.integers(1, 3))])
            made.append(edits.Replace(path, search, new))
    return made


def _decoded(data: bytes) -> str:
    for name, mark in MARKS.items():
        if data.startswith(mark):
            return data.removeprefix(mark).decode("utf-8" if name == "bom" else name, "replace")
    return data.decode("utf-8", "replace")


@QUICK
@given(st.data(), st.dictionaries(NAMES, file_bytes(), min_size=1), st.sampled_from([0o644, 0o755, 0o600, 0o444]))
def test_apply_then_undo_is_the_identity(data: st.DataObject, tree: dict[str, bytes], mode: int) -> None:
    with folder() as name:
        root, journal = Path(name) / "root", Path(name) / "journal"
        write_tree(root, tree)
        for path in tree:
            (root / path).chmod(mode)
        before = read_tree(root)
        accepted = [b for b in data.draw(blocks(tree)) if isinstance(edits.plan(root, [b]), edits.ChangeSet)]
        result = edits.plan(root, accepted)
        assert read_tree(root) == before
        if isinstance(result, edits.ChangeSet):
            edits.apply(result, journal)
            after = {path: (s.data, s.mode) for path, (_, s) in result.states().items() if s is not None}
            gone = {path for path, (_, s) in result.states().items() if s is None}
            assert read_tree(root) == {p: v for p, v in before.items() if p not in gone} | after
            edits.undo(root, journal)
        assert read_tree(root) == before


@QUICK
@given(st.data(), st.dictionaries(NAMES, file_bytes(), min_size=1))
def test_every_patch_applies_with_git(data: st.DataObject, tree: dict[str, bytes]) -> None:
    with folder() as name:
        root = Path(name) / "root"
        write_tree(root, tree)
        git(root, "init", "-q")
        accepted = [b for b in data.draw(blocks(tree)) if isinstance(edits.plan(root, [b]), edits.ChangeSet)]
        result = edits.plan(root, accepted)
        if isinstance(result, edits.ChangeSet):
            git(root, "apply", "--whitespace=nowarn", data=edits.to_patch(result))
            expected = dict(tree)
            for path, (_, state) in result.states().items():
                expected.pop(path, None)
                if state is not None:
                    expected[path] = state.data
            assert {path: content for path, (content, _) in read_tree(root).items()} == expected


@QUICK
@given(
    st.lists(st.tuples(WORDS, ENDINGS), min_size=1, max_size=12),
    st.data(),
    st.lists(WORDS, max_size=4),
    st.sampled_from(["utf-8", "bom", "utf-16-le", "shift_jis", "latin-1"]),
)
def test_untouched_lines_keep_their_bytes(
    numbered: list[tuple[str, str]], data: st.DataObject, new: list[str], encoding: str
) -> None:
    legacy = {
        "shift_jis": "// こんにちは、これは文字コードの確認のための長い注釈です。\n",
        "latin-1": "Die Größe der Schrift ändert sich für jeden Absatz, außer natürlich für Überschriften.\n",
    }
    if encoding in legacy:
        numbered = [(word if word.isascii() else "", end) for word, end in numbered]
        new = [word for word in new if word.isascii()]
    lines = [f"{number}: {word}{end}" for number, (word, end) in enumerate(numbered)]
    lines[:0] = [legacy[encoding]] if encoding in legacy else []
    if data.draw(st.booleans()):
        lines[-1] = content(lines[-1])
    start = data.draw(st.integers(1 if encoding in legacy else 0, len(lines) - 1))
    stop = data.draw(st.integers(start + 1, len(lines)))
    codec = "utf-8" if encoding == "bom" else encoding
    head, middle, tail = ("".join(part).encode(codec) for part in (lines[:start], lines[start:stop], lines[stop:]))
    mark = MARKS.get(encoding, b"")
    with folder() as name:
        root = Path(name) / "root"
        write_tree(root, {"a.txt": mark + head + middle + tail})
        block = edits.Replace("a.txt", tuple(content(line) for line in lines[start:stop]), tuple(new))
        result = edits.plan(root, [block])
        if isinstance(result, edits.Refusals):
            assert {refusal.code for refusal in result.refusals} <= {"no change"}, result.message()
            return
        after = result.changes[0].after
        assert after is not None
        kept_head = mark + head
        assert after.data.startswith(kept_head) or not ending(lines[start - 1])
        assert after.data.endswith(tail)
        written = after.data[len(kept_head) : len(after.data) - len(tail)].decode(codec)
        assert [content(line) for line in split_lines(written)] == new or not tail


FRAGMENTS = st.sampled_from(
    [
        "<<<<<<< SEARCH",
        " a.txt",
        "\n",
        "=======\n",
        ">>>>>>> REPLACE\n",
        "<<<<<<< CREATE ../x\n",
        ">>>>>>> END\n",
        "```\n",
        "\r\n",
        "}",
        "\x00\n    ",
        "<<<<<<< RENAME a -> b\n",
        "--- a/a.txt\n",
        "+++ b/a.txt\n",
        "@@ -1 +1 @@\n",
        "-x\n",
        "+y\n",
        " z\n",
        "\\ No newline\n",
        "@@\n\n    ",
        "diff --git a/a.txt b/a.txt\n",
        "rename to b\n",
        "new file mode 100644\n",
        "GIT binary patch\n",
    ]
)
PARTS = st.sampled_from(["..", ".", "/", ".git", ".GIT", "git~1", "a", "\\", "\u200c", ":"])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(FRAGMENTS, st.text(max_size=6)), max_size=30).map("".join), st.integers(1, 9))
def test_no_answer_raises_or_writes(answer: str, size: int) -> None:
    parser = edits.Parser()
    for start in range(0, len(answer), size):
        parser.feed(answer[start : start + size])
    parser.finish()
    parsed = edits.parse(answer)
    assert (tuple(parser.blocks), tuple(parser.problems)) == (parsed.blocks, parsed.problems)
    with folder() as name:
        root = Path(name) / "root"
        write_tree(root, {"a.txt": b"x\nz\n"})
        before = read_tree(Path(name))
        edits.plan(root, parsed.blocks, problems=parsed.problems)
        assert read_tree(Path(name)) == before


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=30) | st.lists(PARTS).map("".join))
def test_a_path_that_passes_stays_inside(path: str) -> None:
    try:
        accepted = normalise(path)
    except edits.PathRefused:
        return
    inside = os.path.normpath(f"/root/{accepted}")
    assert inside == f"/root/{accepted}"
    assert not any(part.lower() == ".git" for part in accepted.split("/"))
    assert normalise(accepted) == accepted


@settings(max_examples=300, deadline=None)
@given(LINES, LINES, st.booleans(), st.sampled_from(["utf-8", "utf-16", "utf-32"]))
def test_edits_turn_one_text_into_another(
    old: list[tuple[str, str]], new: list[tuple[str, str]], cut: bool, units: edits.Units
) -> None:
    before, after = ("".join(word + end for word, end in lines) for lines in (old, new + old[3:]))
    before = content(before) if cut else before
    made = edits_between(split_lines(before), split_lines(after), units)
    assert apply_to_text(before, made, units) == after


@given(st.text())
def test_lines_join_to_the_text(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(content(line) + ending(line) == line for line in lines)
    assert all("\n" not in content(line) and "\r" not in content(line) for line in lines)


@given(st.lists(st.sampled_from("abc"), max_size=14), st.lists(st.sampled_from("abc"), max_size=14))
def test_changes_describe_the_difference(old: list[str], new: list[str]) -> None:
    result, at = [], 0
    for change in changes_between(old, new):
        result += old[at : change.old_from] + new[change.new_from : change.new_to]
        at = change.old_to
    assert result + old[at:] == new
