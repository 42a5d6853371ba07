"""Leading white space as the file has it, and none at the end."""

from __future__ import annotations

import re

from laguna_daemon.completion.filters.site import Site

_LEADING = re.compile(r"^[ \t]+", re.MULTILINE)


def with_indentation_of_file(text: str, site: Site) -> str:
    """Tabs or spaces, whichever the file uses; of the first line only if the cursor's line is blank so far."""
    first, newline, rest = text.partition("\n")
    if not site.before.strip():
        first = _LEADING.sub(lambda found: _converted(found.group(), site.indent), first)
    return first + newline + _LEADING.sub(lambda found: _converted(found.group(), site.indent), rest)


def without_doubled_indentation(text: str, site: Site) -> str:
    """The first line starts where the cursor is: an answer that brings its own indentation gets it once."""
    if site.before.strip() or not site.before or not text.startswith((" ", "\t")):
        return text
    lead = text[: len(text) - len(text.lstrip(" \t"))]
    return text[len(site.before) :] if lead.startswith(site.before) else text.lstrip(" \t")


def without_blanks_before_end(text: str, site: Site) -> str:
    """No white space at the end; nothing at all if there is nothing else."""
    return text.rstrip()


def step_of(lines: list[str]) -> str:
    """One step of indentation in a file: a tab, or the fewest spaces that a line is indented deeper by (4 if none)."""
    spaces: dict[int, int] = {}
    tabs = 0
    before = 0
    for line in lines:
        if not line.strip():
            continue
        if line.startswith("\t"):
            tabs += 1
        depth = len(line) - len(line.lstrip(" "))
        if 2 <= depth - before <= 8:
            spaces[depth - before] = spaces.get(depth - before, 0) + 1
        before = depth
    if tabs > sum(spaces.values()):
        return "\t"
    return " " * (max(spaces, key=lambda size: spaces[size]) if spaces else 4)


def _converted(lead: str, step: str) -> str:
    if step == "\t":
        columns = len(lead.expandtabs(4))
        return "\t" * (columns // 4) + " " * (columns % 4)
    return lead.replace("\t", step)
