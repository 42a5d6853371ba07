"""The edit language: what a model may ask for, and the text it writes to ask for it.

The same types come from search/replace blocks (``parser``) and from unified diffs (``unified``). Nothing here
touches a file; ``plan`` decides whether a block can be carried out.

The text form, in full::

    <<<<<<< SEARCH path/of/file.py
    whole lines, exactly as they are in the file
    =======
    the lines that take their place
    >>>>>>> REPLACE

    <<<<<<< CREATE path/of/new_file.py
    the text of the file
    >>>>>>> END

    <<<<<<< DELETE path/of/file.py
    >>>>>>> END

    <<<<<<< RENAME old/path.py -> new/path.py
    >>>>>>> END

Markers stand alone on their line. Their length is free from five characters up and the same within one block,
so a block about a file that holds such markers itself uses longer ones. Tolerated, because models write it:
markdown fences around or inside a block, prose between blocks, the path on the line above the block (bare, in
backticks, as a heading, on the fence line) instead of on the marker, several blocks after one path, a uniform
indentation of the whole block, CRLF, a missing last newline, ``------- SEARCH`` / ``+++++++ REPLACE``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

INSTRUCTIONS = """\
Change files by writing edit blocks. To change part of a file:

<<<<<<< SEARCH path/of/file.py
whole lines, copied exactly from the file
=======
the lines that take their place
>>>>>>> REPLACE

To create, delete or rename a file:

<<<<<<< CREATE path/of/new_file.py
the whole text of the file
>>>>>>> END
<<<<<<< DELETE path/of/file.py
>>>>>>> END
<<<<<<< RENAME old/path.py -> new/path.py
>>>>>>> END

Rules:
- Paths are relative to the repository, with forward slashes.
- SEARCH holds whole lines with their indentation and must occur exactly once in the file: add lines around the
  change until it does, and no more than that. Never shorten it with "...".
- Every SEARCH is looked up in the file as you were shown it. Use one block per place; blocks must not overlap.
- An empty part after ======= deletes the lines. To insert, repeat a neighbouring line in both parts.
- To rewrite a file, DELETE it and CREATE it again. After a RENAME, use the new path.
- Where the text itself holds a line like ======= or >>>>>>>, use markers of nine characters for that block.
- Text of the form [redacted: ...] hides something you cannot see: never search for it and never write it.
- All blocks are applied together, or none of them.
"""

ProblemCode: TypeAlias = Literal[
    "unfinished", "no separator", "two separators", "no path", "bad path", "stray marker",
    "unknown operation", "nested", "too large", "not a diff", "unsupported",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Replace:
    """Put ``replace`` in the place of the one run of lines that is ``search``.

    Lines carry no line ending. ``line`` is where the block starts in the answer (1-based). For a hunk of a unified
    diff, ``at`` is the 1-based line it claims in the old file (0 where it states none) and ``final_newline`` says
    whether the file shall end with a newline (None: as it does now).
    """

    path: str
    search: tuple[str, ...]
    replace: tuple[str, ...]
    line: int = 0
    at: int | None = None
    final_newline: bool | None = None


@dataclass(frozen=True, slots=True)
class Create:
    """Make a file that does not exist."""

    path: str
    text: str
    line: int = 0
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a file."""

    path: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Rename:
    """Move a file to a path where nothing is."""

    path: str
    target: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class SetMode:
    """Set or clear the executable bits; only unified diffs can say this."""

    path: str
    executable: bool
    line: int = 0


Block: TypeAlias = Replace | Create | Delete | Rename | SetMode


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the answer that looks like an edit and is none; ``message`` is written for the model."""

    code: ProblemCode
    message: str
    line: int
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Prose:
    """Text between blocks, one or more whole lines as they were written."""

    text: str


@dataclass(frozen=True, slots=True)
class Began:
    """A block has been opened; its end has not been seen."""

    operation: str
    path: str | None
    line: int


Event: TypeAlias = Prose | Began | Block | Problem


def strip_fence(lines: tuple[str, ...]) -> tuple[str, tuple[str, ...]] | None:
    """The fence line and what stands inside it, if ``lines`` are exactly one markdown fence; else None."""
    if len(lines) < 2:
        return None
    opening, closing = lines[0].strip(), lines[-1].strip()
    for mark in ("```", "~~~"):
        if opening.startswith(mark) and closing and set(closing) == {mark[0]} and len(closing) >= 3:
            width = len(opening) - len(opening.lstrip(mark[0]))
            inner = lines[1:-1]
            closed_inside = any(line.strip() == closing for line in inner)
            return None if width != len(closing) or closed_inside else (opening, inner)
    return None
