"""Every golden case, through every way the engine can be used."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from laguna_daemon import edits
from support.edit_cases import CASES, Case, git, load, snapshot
from support.editor import apply_to_text

ALL = [load(path) for path in sorted(CASES.glob("*.case"))]


def planned(case: Case, root: Path) -> edits.ChangeSet | edits.Refusals:
    parsed = edits.parse(case.answer)
    return edits.plan(
        root,
        parsed.blocks,
        case.seen(),
        problems=parsed.problems,
        buffers=case.buffers,
        allow_ignored=case.allow_ignored,
    )


def outcome(case: Case, before: dict[str, tuple[object, ...]]) -> dict[str, tuple[object, ...]]:
    after = {path: state for path, state in before.items() if path not in case.gone}
    return after | {path: (stat.S_IFREG, mode, data) for path, (data, mode) in case.expect.items()}


def test_there_are_enough_cases() -> None:
    assert len(ALL) >= 60


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_case(case: Case, tmp_path: Path) -> None:
    root, journal = tmp_path / "repo", tmp_path / "journal"
    case.build(root)
    before = snapshot(root)
    result = planned(case, root)
    if case.refused:
        assert isinstance(result, edits.Refusals), result
        assert [(refusal.code, refusal.path) for refusal in result.refusals] == case.refused
        for words in case.says:
            assert words in result.message()
        assert snapshot(root) == before
        return
    assert isinstance(result, edits.ChangeSet), result.message()
    assert all(any(words in note for note in result.notes) for words in case.notes)
    if case.buffers:
        with pytest.raises(edits.EditsRefused):
            edits.apply(result, journal)
        assert snapshot(root) == before
        return
    edits.apply(result, journal)
    assert snapshot(root) == outcome(case, before)
    edits.undo(root, journal)
    assert snapshot(root) == before


@pytest.mark.parametrize(
    "case", [case for case in ALL if not case.refused and not case.buffers], ids=lambda case: case.name
)
def test_patch_applies_with_git(case: Case, tmp_path: Path) -> None:
    root = tmp_path / "repo"
    case.build(root)
    result = planned(case, root)
    assert isinstance(result, edits.ChangeSet)
    copy = tmp_path / "copy"
    shutil.copytree(root, copy, symlinks=True)
    git(copy, "apply", "--whitespace=nowarn", data=edits.to_patch(result))
    assert _as_git_sees(snapshot(copy)) == _as_git_sees(outcome(case, snapshot(root)))
    git(copy, "apply", "--whitespace=nowarn", "-R", data=edits.to_patch(result))
    assert _as_git_sees(snapshot(copy)) == _as_git_sees(snapshot(root))


@pytest.mark.parametrize("case", [case for case in ALL if not case.refused], ids=lambda case: case.name)
@pytest.mark.parametrize("units", ["utf-8", "utf-16", "utf-32"])
def test_an_editor_arrives_at_the_same_text(case: Case, units: edits.Units, tmp_path: Path) -> None:
    root = tmp_path / "repo"
    case.build(root)
    result = planned(case, root)
    assert isinstance(result, edits.ChangeSet)
    changes = {change.path: change for change in result.changes}
    for file in edits.text_edits(result, units=units):
        change = changes[file.path]
        if change.encoding is None or change.after is None:
            assert file.edits == ()
            continue
        before = case.buffers.get(file.path)
        if before is None:
            before = _text(change.before, change.encoding)
        assert apply_to_text(before, file.edits, units) == _text(change.after, change.encoding)


def _as_git_sees(tree: dict[str, tuple[object, ...]]) -> dict[str, tuple[object, ...]]:
    """git knows one bit of a mode."""
    return {path: (kind, bool(int(str(mode)) & 0o100), data) for path, (kind, mode, data) in tree.items()}


def _text(state: edits.FileState | None, encoding: str) -> str:
    return "" if state is None else state.data.decode(encoding).removeprefix("\ufeff")


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
@pytest.mark.parametrize("size", [1, 2, 7])
def test_pieces_of_any_size_parse_alike(case: Case, size: int) -> None:
    parser = edits.Parser()
    prose = ""
    for start in range(0, len(case.answer), size):
        prose += "".join(e.text for e in parser.feed(case.answer[start : start + size]) if isinstance(e, edits.Prose))
    parser.finish()
    whole = edits.parse(case.answer)
    assert (tuple(parser.blocks), tuple(parser.problems)) == (whole.blocks, whole.problems)
    assert set(prose.split("\n")) <= {line.removesuffix("\r") for line in case.answer.split("\n")} | {""}
