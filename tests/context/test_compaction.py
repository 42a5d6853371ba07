"""One cut: what lies before it stays byte-identical, what lies behind it is packed anew."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laguna_context import planning
from laguna_context.planning import COMFORT, MOST_CARRIED, SPARE, Limits, Plan, price
from laguna_context.snapshot import Part
from laguna_context.tokens import Tokenizer
from laguna_context.workspace import Budget
from support import view
from support.repositories import repository, write

TIGHT = Budget(context=12_000, output=500, task=500, overlay=700)


def parts(*sizes: int) -> list[Part]:
    out, start = [], 0
    for number, size in enumerate(sizes):
        out.append(Part(f"d{number}", "", "", "", start, start + size))
        start += size
    return out


def plan(
    documents: list[Part],
    carried: dict[str, int],
    everything: int,
    wanted: dict[str, int],
    budget: int,
    overlay: int,
    **limits: Any,
) -> Plan:
    return planning.plan(documents, carried, everything, wanted, Limits(budget, overlay, **limits))


def test_a_change_at_the_end_is_cut_at_the_end() -> None:
    found = plan(parts(1000, 1000, 1000, 100), {"d3": 90}, 90, {"d3": 100}, 5000, 170)
    assert (found.cut, found.prefill, found.carried, found.waits) == (3, 100, 0, False)


def test_a_small_correction_in_front_is_carried() -> None:
    found = plan(parts(1000, 1000, 1000, 100), {"d0": 10, "d3": 100}, 110, {"d0": 1000, "d3": 100}, 5000, 170)
    assert (found.cut, found.prefill, found.carried) == (3, 110, 10)


def test_the_whole_snapshot_is_kept_where_that_is_cheapest() -> None:
    found = plan(parts(1000, 1000, 1000, 100), {"d0": 10}, 15, {"d0": 1000}, 5000, 170)
    assert (found.cut, found.prefill, found.carried) == (4, 15, 15)


def test_corrections_that_fill_the_overlay_are_not_carried() -> None:
    found = plan(parts(1000, 1000, 1000, 100), {"d0": 160}, 160, {"d0": 1000}, 5000, 170)
    assert (found.cut, found.carried, found.waits) == (0, 0, True)


def test_a_cut_that_makes_nobody_wait_comes_first() -> None:
    sizes = [1000] * 20
    shallow = plan(parts(*sizes), {"d1": 1000, "d18": 200}, 1200, {}, 30_000, 2000)
    assert (shallow.cut, shallow.prefill, shallow.waits) == (20, 1200, False)
    deep = plan(parts(*sizes), {"d1": 1500, "d5": 300}, 1800, {}, 22_000, 2000)
    assert (deep.cut, deep.carried, deep.waits) == (1, 0, True), "who waits anyway waits once for all of it"


def test_room_is_made_for_files_that_only_the_overlay_shows() -> None:
    assert plan(parts(1000, 1000, 1000), {}, 500, {"new": 500}, 3000, 700).cut == 2
    assert plan(parts(1000, 1000, 1000), {}, 200, {"new": 200}, 9000, 700).cut == 3


def test_what_has_grown_must_fit_behind_the_cut() -> None:
    assert plan(parts(1000, 10_000, 1000), {"d2": 600}, 600, {"d2": 1500}, 12_500, 700).cut == 2
    assert plan(parts(1000, 10_000, 1000), {"d2": 600}, 600, {"d2": 1501}, 12_500, 700).cut == 1


def test_carried_entries_count_against_the_snapshots_budget() -> None:
    assert plan(parts(1000, 1000), {"d0": 100}, 100, {}, 2100, 700).cut == 2
    assert plan(parts(1000, 1000), {"d0": 100}, 100, {}, 2099, 700).cut < 2


def test_a_document_that_must_go_is_not_kept() -> None:
    assert plan(parts(1000, 1000, 1000), {}, 0, {}, 9000, 700, last=1).cut == 1


def test_a_wait_leaves_room_for_what_changes_next() -> None:
    sizes = [1000] * 20
    found = plan(parts(*sizes), {"d0": 1900, "d9": 900}, 2800, {}, 20_000, 2000)
    assert found.waits
    assert found.cut + found.tail / 1000 == 20 * (1 - SPARE)
    grown = plan(parts(*sizes), {"d0": 1900}, 1900, {"d0": 1000, "d19": 1000}, 20_000, 2000)
    assert grown.tail >= 2000, "what has changed is shown all the same"


def test_what_lies_between_a_cut_and_the_place_to_resume_is_read_too() -> None:
    sizes = [1000] * 20
    carried, wanted = {"d19": 100}, {"d19": 1000}
    anywhere = plan(parts(*sizes), carried, 2000, wanted, 21_000, 2000)
    assert (anywhere.cut, anywhere.prefill, anywhere.waits) == (19, 1000, False)
    near = plan(parts(*sizes), carried, 2000, wanted, 21_000, 2000, resumable=[18_900])
    assert (near.cut, near.prefill, near.waits) == (19, 1100, False)
    far = plan(parts(*sizes), carried, 2000, wanted, 21_000, 2000, resumable=[5000, 10_000])
    assert far.prefill == far.tail + 1000 * far.cut - 10_000
    assert far.waits
    whole = plan(parts(*sizes), carried, 100, wanted, 21_000, 2000, resumable=[15_000, 20_000])
    assert (whole.cut, whole.prefill, whole.waits) == (20, 100, False)


def test_nothing_to_cut() -> None:
    assert plan([], {}, 0, {}, 100, 10).cut == 0


@given(
    st.lists(st.integers(1, 500), max_size=12),
    st.dictionaries(st.integers(0, 11), st.integers(1, 200), max_size=8),
    st.integers(0, 800),
)
def test_the_plan_is_the_cheapest_of_all_allowed_cuts(sizes: list[int], stale: dict[int, int], added: int) -> None:
    budget, overlay = sum(sizes) + 300, 400
    carried = {f"d{index}": tokens for index, tokens in stale.items() if index < len(sizes)}
    everything = sum(carried.values()) + added
    wanted = {path: 2 * tokens for path, tokens in carried.items()} | {"new": added}
    found = plan(parts(*sizes), carried, everything, wanted, budget, overlay)

    def behind(cut: int) -> int:
        return everything if cut == len(sizes) else sum(carried.get(f"d{i}", 0) for i in range(cut))

    def changed(cut: int) -> int:
        return 0 if cut == len(sizes) else added + sum(wanted.get(f"d{i}", 0) for i in range(cut, len(sizes)))

    def score(cut: int) -> tuple[bool, float]:
        kept = sum(sizes[:cut])
        space = budget - kept - behind(cut)
        tail = min(space, changed(cut) + sum(sizes[i] for i in range(cut, len(sizes)) if f"d{i}" not in wanted))
        waits = tail + behind(cut) > COMFORT * (kept + tail + behind(cut))
        if waits and cut < len(sizes):
            tail = min(tail, max(space - int(SPARE * budget), changed(cut)))
        room = overlay + min(max(0, budget - kept - tail), overlay) - behind(cut)
        return waits, price(tail + behind(cut), room, waits, budget)

    def allowed(cut: int) -> bool:
        fits = sum(sizes[:cut]) + changed(cut) + behind(cut) <= budget
        return cut == 0 or (behind(cut) <= MOST_CARRIED * overlay and fits)

    assert allowed(found.cut)
    assert score(found.cut) == min(score(cut) for cut in range(len(sizes) + 1) if allowed(cut))


def test_an_overlay_past_its_budget_is_compacted(tmp_path: Path, open_workspace: object, tokenizer: Tokenizer) -> None:
    files = {f"m{i:02}.py": "".join(f"v{j} = {i}\n" for j in range(40)) for i in range(12)}
    root = repository(tmp_path / "repo", files, commit=True)
    space = open_workspace(root, TIGHT)  # type: ignore[operator]
    prompts = [space.prompt("?")]
    for number in range(40):
        path = f"m{10 + number % 2}.py"
        files[path] = files[path].replace(f"v{number % 40} = ", f"w{number % 40} = ")
        write(root, {path: files[path]})
        space.changed([path])
        prompts.append(space.prompt("?"))
        assert prompts[-1].prefix_tokens + prompts[-1].overlay_tokens <= TIGHT.context - TIGHT.output - TIGHT.task
        assert view.read(tokenizer.decode(prompts[-1].ids).decode()).files == files
    assert 1 <= space.compactions <= 12
    kept = []
    for before, after in pairwise(prompts):
        if before.snapshot != after.snapshot:
            shared = next(i for i, pair in enumerate(zip(before.ids, after.ids, strict=False)) if pair[0] != pair[1])
            kept.append(shared / before.prefix_tokens)
            assert any("compacted" in note for note in after.notes)
    assert all(share > 0.7 for share in kept[1:]), "what is edited has moved to the back"


def test_stale_documents_before_the_cut_keep_their_bytes(
    tmp_path: Path, open_workspace: object, tokenizer: Tokenizer
) -> None:
    files = {f"m{i:02}.py": "".join(f"v{j} = {i}\n" for j in range(40)) for i in range(22)}
    root = repository(tmp_path / "repo", files, commit=True)
    space = open_workspace(root, TIGHT)  # type: ignore[operator]
    first = space.prompt("?")
    front, back = first.documents[0].path, first.documents[-1].path
    files[front] = files[front].replace("v3 = ", "v3 = 'stale' + ")
    files[back] = "rewritten = 1\n" * 60
    write(root, files)
    space.changed([front, back])
    space.prompt("?")
    assert space.compact(force=True)
    second = space.prompt("?")
    head = first.documents[0].start
    end = first.documents[0].end
    assert second.ids[head:end].tolist() == first.ids[head:end].tolist()
    found = view.read(tokenizer.decode(second.ids).decode())
    assert found.kinds == [("diff", front)]
    assert found.files == files
    space.close()
    again = open_workspace(root, TIGHT)  # type: ignore[operator]
    assert again.prompt("?").ids.tolist() == second.ids.tolist()


def test_where_the_engine_can_only_resume_at_the_end_the_snapshot_is_kept(
    tmp_path: Path, open_workspace: object, tokenizer: Tokenizer
) -> None:
    files = {f"m{i:02}.py": "".join(f"v{j} = {i}\n" for j in range(40)) for i in range(22)}
    root = repository(tmp_path / "repo", files, commit=True)
    spaces = [open_workspace(root, TIGHT) for _ in range(2)]  # type: ignore[operator]
    first = spaces[0].prompt("?")
    spaces[1].resumable = [first.prefix_tokens]
    files[first.documents[-1].path] = "rewritten = 1\n" * 40
    files[first.documents[0].path] += "added = 1\n"
    write(root, files)
    kept = []
    for space in spaces:
        space.changed(None)
        space.prompt("?")
        assert space.compact(force=True) == (space.resumable is None), "one entry each is as short as can be"
        found = space.prompt("?")
        kept.append(found.snapshot == first.snapshot)
        assert view.read(tokenizer.decode(found.ids).decode()).files == files
    assert kept == [False, True]


def test_an_overlay_of_many_small_edits_is_written_anew_behind_the_same_snapshot(
    tmp_path: Path, open_workspace: object, tokenizer: Tokenizer
) -> None:
    files = {f"m{i:02}.py": "".join(f"v{j} = {i}\n" for j in range(40)) for i in range(12)}
    root = repository(tmp_path / "repo", files, commit=True)
    space = open_workspace(root, TIGHT)  # type: ignore[operator]
    for number in range(3):
        files["m00.py"] = files["m00.py"].replace("v3 = ", f"v3 = {number}")
        write(root, {"m00.py": files["m00.py"]})
        space.changed(["m00.py"])
        before = space.prompt("?")
    assert space.compact(force=True)
    after = space.prompt("?")
    assert after.snapshot == before.snapshot
    assert after.lineage != before.lineage
    assert after.overlay_tokens < before.overlay_tokens / 2
    assert view.read(tokenizer.decode(after.ids).decode()).files == files


def test_what_is_being_edited_stays_in_the_prompt(tmp_path: Path, open_workspace: object, tokenizer: Tokenizer) -> None:
    files = {f"m{i:02}.py": "".join(f"v{j} = {i}\n" for j in range(40)) for i in range(60)}
    root = repository(tmp_path / "repo", files, commit=True)
    space = open_workspace(root, TIGHT)  # type: ignore[operator]
    shown = [part.path for part in space.prompt("?").documents][-2]
    for number in range(6):
        files[shown] = f"rewritten = {number}\n" * 100
        write(root, {shown: files[shown]})
        space.changed([shown])
        found = view.read(tokenizer.decode(space.prompt("?").ids).decode())
        assert found.files[shown] == files[shown]
    assert space.compactions > 1


def test_compacting_by_choice_needs_a_reason(tmp_path: Path, open_workspace: object) -> None:
    root = repository(tmp_path / "repo", {"a.py": "a = 1\n"}, commit=True)
    space = open_workspace(root, TIGHT)  # type: ignore[operator]
    assert not space.compact()
    assert not space.compact(force=True), "the same tree gives the same snapshot"


def test_a_mass_change_is_one_compaction(tmp_path: Path, open_workspace: object, tokenizer: Tokenizer) -> None:
    files = {f"m{i}.py": f"value = {i}\n" * 20 for i in range(40)}
    root = repository(tmp_path / "repo", files, commit=True)
    space = open_workspace(root, TIGHT)  # type: ignore[operator]
    files = {f"m{i}.py": f"other = {i}\n" * 20 for i in range(60)}
    write(root, files)
    space.changed(None)
    prompt = space.prompt("?")
    assert space.compactions == 1
    found = view.read(tokenizer.decode(prompt.ids).decode())
    assert found.files.items() <= files.items()
    assert len(found.files) > 20


@pytest.mark.parametrize("place", [0, 5, -1])
@pytest.mark.parametrize("by_choice", [False, True])
def test_a_file_that_outgrows_every_entry_does_not_stay_as_it_was(
    tmp_path: Path, open_workspace: object, tokenizer: Tokenizer, place: int, by_choice: bool
) -> None:
    files = {f"m{i:02}.py": "".join(f"v{j} = {i}\n" for j in range(40)) for i in range(12)}
    root = repository(tmp_path / "repo", files, commit=True)
    space = open_workspace(root, TIGHT)  # type: ignore[operator]

    def shown() -> dict[str, str]:
        return view.read(tokenizer.decode(space.prompt("?").ids).decode()).files

    path = space.prompt("?").documents[place].path
    grown = "".join(f"grown_{number} = {number * 7919}\n" for number in range(3000))
    assert tokenizer.encode(grown).size > TIGHT.context, "or an entry would do"
    write(root, {path: grown})
    space.changed([path])
    if by_choice:
        space.compact(force=True)
    assert shown() == {name: text for name, text in files.items() if name != path}
    write(root, {path: files[path]})
    space.changed([path])
    space.compact(force=True)
    assert shown() == files
