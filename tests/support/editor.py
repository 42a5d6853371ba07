"""What an editor does with text edits, written independently of the code under test."""

from __future__ import annotations

import re
from collections.abc import Sequence

from laguna_daemon.edits import TextEdit

_ENCODINGS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def offset(text: str, line: int, character: int, units: str) -> int:
    """The index into ``text`` of a position."""
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", text))]
    encoding, width = _ENCODINGS[units]
    rest = text[starts[line] :].encode(encoding)[: character * width]
    return starts[line] + len(rest.decode(encoding))


def apply_to_text(text: str, edits: Sequence[TextEdit], units: str) -> str:
    """The text after all edits; they must be in order and not overlap."""
    result, at = "", 0
    for edit in edits:
        start = offset(text, edit.start.line, edit.start.character, units)
        end = offset(text, edit.end.line, edit.end.character, units)
        assert at <= start <= end
        result += text[at:start] + edit.new_text
        at = end
    return result + text[at:]
