"""Text that is there already, or comes again and again."""

from __future__ import annotations

import re

from laguna_daemon.completion.filters.site import Site, width

_STUTTER = re.compile(r"([^\n]*?[A-Za-z_][^\n]{1,60}?)\1{5,}")
_MOST = 8000  # characters; beyond, the search would take long
_LEAST = 4  # characters of a line that says something; brackets and `else` come often


def without_loops(text: str, site: Site) -> str:
    """A line, or a group of up to four lines, that comes back at once is said once: small models end in circles.

    So is a line that comes three times, each time deeper.
    """
    lines = text.split("\n")
    for start in range(len(lines)):
        if _descends(lines[start : start + 3]):
            return "\n".join(lines[: start + 1])
        for size in range(1, 5):
            block = lines[start : start + size]
            again = lines[start + size : start + 2 * size]
            if block == again and len("".join(block).strip()) >= _LEAST:
                return "\n".join(lines[: start + size])
    return text


def _descends(lines: list[str]) -> bool:
    said = {line.strip() for line in lines}
    depths = [width(line) for line in lines]
    return len(lines) == 3 and len(said) == 1 and len(lines[0].strip()) >= _LEAST and depths[0] < depths[1] < depths[2]


def without_stutter(text: str, site: Site) -> str:
    """A piece of a line that comes six times or more on end is said once, and the text ends there."""
    if len(text) > _MOST:
        return text
    found = _STUTTER.search(text)
    return text if found is None else text[: found.end(1)]


def without_line_above(text: str, site: Site) -> str:
    """Nothing that only says again what stands right above the cursor."""
    above = [line.strip() for line in site.above if line.strip()]
    said = [line.strip() for line in (site.before + text).split("\n") if line.strip()]
    if not above or not said or len(said[0]) < _LEAST:
        return text
    if said[0] == above[-1] and not (len(said) > 1 and said[1] not in above):
        return ""
    whole = len(said) > 1 and len(above) >= len(said) and above[-len(said) :] == said
    return "" if whole else text


def without_suffix(text: str, site: Site) -> str:
    """Cut before the lines that stand behind the cursor already, and before the rest of the cursor's line."""
    if len(site.rest.strip()) >= _LEAST:
        found = text.find(site.rest.strip())
        if found >= 0:
            return text[:found]
    below = [line.strip() for line in site.below]
    while below and not below[0]:
        below.pop(0)
    if not below:
        return text
    lines = text.split("\n")
    for start in range(0 if not site.before.strip() else 1, len(lines)):
        rest = [line.strip() for line in lines[start:] if line.strip()]
        if rest and rest == below[: len(rest)] and (len("".join(rest)) >= _LEAST or start > 0):
            return "\n".join(lines[:start])
        if rest and rest[0] == below[0] and len(below[0]) >= _LEAST:
            return "\n".join(lines[:start])
    return text
