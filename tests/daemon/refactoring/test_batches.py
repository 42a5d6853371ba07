"""Batches: what one answer and one task have room for."""

from __future__ import annotations

from laguna_context.reading import Document, to_document
from laguna_daemon.service.refactoring import tasks
from laguna_daemon.service.refactoring.batches import Item, edit_tokens, group, size_up
from laguna_daemon.service.refactoring.files import Planned


def count(text: str) -> int:
    return len(text.split())


def document(text: str) -> Document:
    found = to_document("a.py", text.encode())
    assert isinstance(found, Document)
    return found


def test_edits_are_within_the_output_and_no_file_is_lost() -> None:
    items = [Item(Planned(f"f{n}.py", "", (1, 2), 60), 130) for n in range(20)]
    found = group(items, 400, 1000, count)
    assert [len(batch) for batch in found] == [3] * 6 + [2]
    assert [item for batch in found for item in batch] == items


def test_a_file_larger_than_any_batch_has_one_of_its_own() -> None:
    items = [Item(Planned("a", ""), 10), Item(Planned("b", ""), 9000), Item(Planned("c", ""), 10)]
    assert [[item.planned.path for item in batch] for batch in group(items, 100, 100, count)] == [["a"], ["b"], ["c"]]


def test_what_is_shown_with_the_task_counts() -> None:
    items = [Item(Planned(f"f{n}", ""), 1, (("f", "text"),), 40) for n in range(5)]
    assert [len(batch) for batch in group(items, 1000, 100, count)] == [2, 2, 1]


def test_a_file_that_is_not_in_the_prompt_is_shown_whole_in_parts_or_left_out() -> None:
    text = "\n".join(f"line {n}" for n in range(200))
    planned = Planned("a.py", "", (50, 53, 120), 30)
    whole = size_up(planned, document(text), 1000, count)
    assert isinstance(whole, Item)
    assert whole.extras == (("a.py", text),)
    assert whole.digest == document(text).sha256
    parts = size_up(planned, document(text), 100, count)
    assert isinstance(parts, Item)
    assert [name for name, _ in parts.extras] == ["a.py:45-60", "a.py:115-127"]
    assert parts.extras[0][1].split("\n")[0] == "line 44"
    assert parts.digest == "", "it was not shown whole, so it must not count as seen"
    assert size_up(planned, document(text), 10, count) == "it is too long to be shown (400 tokens)"
    assert size_up(planned, None, 10, count) == "it has no text that may be shown"


def test_a_guess_grows_with_the_places() -> None:
    few, many = Planned("a", "", (1,), 40), Planned("a", "", tuple(range(10)), 400)
    assert 0 < edit_tokens(few) < edit_tokens(many)
    assert edit_tokens(Planned("a", "")) > 0


def test_refusals_come_in_as_many_turns_as_they_need() -> None:
    messages = [f"number{n} " + "word " * 30 for n in range(10)]
    texts = tasks.refusals(messages, 4, 100, count)
    assert len(texts) > 2
    assert all(f"number{n} " in "".join(texts) for n in range(10))
    assert all("other 4 blocks are kept" in text for text in texts)
    assert max(map(count, texts)) <= 140


def test_a_long_output_keeps_its_beginning_and_its_end() -> None:
    text = " ".join(f"w{n}" for n in range(5000))
    short = tasks.cut(text, 200, count)
    assert count(short) <= 200
    assert short.startswith("w0 ")
    assert short.endswith("w4999")
    assert "characters left out" in short
    assert tasks.cut("short", 200, count) == "short"
