"""Where a suggestion ends: with the construct that the cursor is in."""

from __future__ import annotations

import re

from laguna_daemon.completion.filters.site import Site, width

_CLOSER = re.compile(r"^\s*[)}\]]+[;,]?\s*$")
_GOES_ON = re.compile(r"^\s*(?:[)}\]]|else\b|elif\b|except\b|finally\b|catch\b|case\b|default\b|end\b|when\b)")


def until_end_of_construct(text: str, site: Site) -> str:
    """Up to the line that leaves the block of the cursor; the bracket that closes this block still belongs to it.

    With text right of the cursor only the cursor's line is completed.
    """
    if site.rest.strip() and not _only_closers(site.rest):
        return text.partition("\n")[0]
    lines = text.split("\n")
    return "\n".join(lines[: end_of_construct(lines, site)])


def end_of_construct(lines: list[str], site: Site) -> int:
    """How many of a suggestion's lines belong to the construct at the cursor; all of them if its end is not in it."""
    depth = site.depth
    # A text that begins with a line ending finds the cursor's line complete.
    fresh = not site.before.strip() or not lines[0].strip()
    for number, line in enumerate(lines):
        if number == 0 or not line.strip():
            continue
        indent = width(line)
        if indent < depth:
            return number + 1 if _CLOSER.match(line) and depth - indent <= width(site.indent) else number
        # At the depth of a line that was begun before the cursor the next statement starts.
        if indent == depth and not fresh and not _GOES_ON.match(line) and (number > 1 or not _open(site, lines)):
            return number
        if fresh and depth == 0 and indent == 0 and number > 1 and not lines[number - 1].strip():
            return number  # at the top level a blank line ends a definition
    return len(lines)


def without_unfinished_line(text: str, site: Site) -> str:
    """Of a text that was cut off, only its whole lines; a single line stays, since its beginning may still help."""
    if not site.cut or "\n" not in text.rstrip("\n"):
        return text
    return text.rpartition("\n")[0]


def _open(site: Site, lines: list[str]) -> bool:
    """Whether the cursor's line goes on in the next one."""
    return (site.before + lines[0]).rstrip().endswith((":", "{", "(", "[", ",", "\\", "=", "=>", "->"))


def _only_closers(rest: str) -> bool:
    return all(character in ")]}\"'`>;,: \t" for character in rest)
