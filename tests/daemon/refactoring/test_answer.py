"""Answers as they stream in: blocks, and the lines about what is planned and skipped."""

from __future__ import annotations

import pytest

from laguna_daemon.schemas import Event, FileEvent, TextEvent
from laguna_daemon.service.refactoring.answer import Answer

TEXT = """\
I will rename it.
FILE a.py
- FILE: `b/c.py`
FILE d.py - the caller
SKIP e.md: it only quotes the old name
SKIP `f.md` - history
Skip nothing else.
<<<<<<< SEARCH a.py
FILE x
=======
SKIP y: z
>>>>>>> REPLACE
<<<<<<< DELETE b/c.py
>>>>>>> END
"""


def read(text: str, size: int) -> tuple[Answer, list[Event]]:
    events: list[Event] = []
    answer = Answer(events.append)
    for at in range(0, len(text), size):
        answer.feed(text[at : at + size])
    answer.finish()
    return answer, events


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_files_skips_and_blocks(size: int) -> None:
    answer, events = read(TEXT, size)
    assert list(answer.named) == ["a.py", "b/c.py", "d.py"]
    assert answer.skipped == {"e.md": "it only quotes the old name", "f.md": "history"}
    assert [type(block).__name__ for block in answer.blocks] == ["Replace", "Delete"]
    assert answer.problems == []
    assert answer.cut_off is None
    assert [(e.operation, e.path, e.done) for e in events if isinstance(e, FileEvent)] == [
        ("edit", "a.py", False),
        ("edit", "a.py", True),
        ("delete", "b/c.py", True),
    ]
    prose = "".join(event.text for event in events if isinstance(event, TextEvent))
    assert prose == "I will rename it.\nSkip nothing else.\n"


def test_a_block_that_breaks_off_is_no_block() -> None:
    answer, _ = read(TEXT[: TEXT.index("SKIP y")], 5)
    assert answer.blocks == []
    assert answer.problems == []
    assert answer.cut_off is not None
    assert answer.cut_off.path == "a.py"
