"""Where a completion goes, as far as a filter must know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Site:
    """The cursor's surroundings.

    ``before`` and ``rest`` are the cursor's line left and right of it, without the line ending; ``above`` are the
    lines before it, nearest last, and ``below`` those behind it, all without endings. ``indent`` is one step of the
    file's indentation. ``cut`` says that the text was broken off by a limit, ``words`` that
    the document is one of words (Markdown and the like).
    """

    before: str = ""
    rest: str = ""
    above: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    indent: str = "    "
    cut: bool = False
    words: bool = False

    @property
    def depth(self) -> int:
        """Width of the indentation at the cursor's line; of a blank line, as far as the cursor is in."""
        return width(self.before)


Filter = Callable[[str, Site], str]


def width(line: str) -> int:
    """Columns of a line's leading white space, a tab counting four."""
    return len(line[: len(line) - len(line.lstrip(" \t"))].expandtabs(4))
