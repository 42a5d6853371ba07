"""What a chat model puts around code: prose, Markdown fences, the text it was given."""

from __future__ import annotations

import re

from laguna_daemon.completion.filters.site import Site

_FENCE = re.compile(r"\A\s*(```+|~~~+)[^\n]*\n(.*?)(?:\n?\1\s*)?\Z", re.DOTALL)
_SENTENCE = re.compile(
    r"\A\s*(?:sure|certainly|here|to complete|the (?:completed|missing|following))\b[^\n]*[:.!][ \t]*\n+", re.I
)
_INSIDE = re.compile(r"(?:^|\n)[ \t]*(```+|~~~+)[^\n`]*\n(.*?)(?:\n[ \t]*\1|\Z)", re.DOTALL)
_PROSE = re.compile(
    r"\A\s*(?:(?:This|The|It|A|In|You|To)\s+(?:[\w'-]+\s+){0,4}(?:is|are|was|stands?|will|can|should|uses?|creates?|of)\b"
    r"|The \w+ is:)"
)
_WRITTEN = re.compile(r"#|//|--|/\*|^\s*\*|<!--|[\"'`%]")  # a comment or a text has begun on the line
_QUOTES = ('"""', "'''")
_MARKER = "<CURSOR>"
_LEAST_ECHO = 3  # characters; fewer are as likely meant


def is_chatty(text: str) -> bool:
    """Whether an answer begins with something that is not code, so that its lines mean nothing yet."""
    return text.lstrip().startswith(("```", "~~~")) or _SENTENCE.match(text) is not None


def without_preamble(text: str, site: Site) -> str:
    """The code of an answer that begins with a sentence about it: what is fenced, else what follows the sentence."""
    found = _SENTENCE.match(text)
    if found is None:
        return text
    fenced = _INSIDE.search(text)
    return fenced.group(2) if fenced else text[found.end() :]


def without_fence(text: str, site: Site) -> str:
    """The code inside a Markdown fence that wraps the whole answer."""
    found = _FENCE.match(text)
    return found.group(2) if found else text


def without_prose(text: str, site: Site) -> str:
    """Nothing, where a small model talks about the code: in a comment, a text or a document of words it may."""
    if site.words or _PROSE.match(text) is None or _WRITTEN.search(site.before):
        return text
    above = "\n".join(site.above)
    return text if any(above.count(quote) % 2 for quote in _QUOTES) else ""


def without_marker(text: str, site: Site) -> str:
    """What the model wrote at the cursor when it repeated the marker too."""
    before, found, after = text.partition(_MARKER)
    return text if not found else (after or before)


def without_echo(text: str, site: Site) -> str:
    """Nothing twice: an answer that repeats the cursor's line, or the lines above it, starts behind them."""
    given = [*site.above[-8:], site.before]
    for first in range(len(given)):
        echo = "\n".join(given[first:])
        for said in (echo, echo.lstrip()):
            if len(said.strip()) >= _LEAST_ECHO and text.startswith(said):
                return text[len(said) :]
    return text
