"""Paths as models write them above a block: bare, in backticks, as a heading, on the line of a fence."""

from __future__ import annotations

import re

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*([^`]*)$")
_LABEL = re.compile(r"^(?:file|path|filename|file ?path)\s*[:=]\s*", re.IGNORECASE)
_QUOTES = ("`", '"', "'", "**", "__")
# Names without a dot or a slash that are files all the same.
_BARE = {"Makefile", "Dockerfile", "LICENSE", "README", "Justfile", "Procfile", "Gemfile", "Rakefile", "CODEOWNERS"}


def is_fence(line: str) -> bool:
    """Whether the line opens or closes a markdown fence."""
    return _FENCE.match(line) is not None


def unquote(text: str) -> str:
    """A path without the quotes, backticks or bold marks around it."""
    text = text.strip()
    changed = True
    while changed:
        changed = False
        for quote in _QUOTES:
            if len(text) > 2 * len(quote) and text.startswith(quote) and text.endswith(quote):
                text, changed = text[len(quote) : -len(quote)].strip(), True
    return text


def path_in(line: str) -> str | None:
    """The path that a line outside a block names, or None if it names none or more than one."""
    if fence := _FENCE.match(line):
        return _on_fence(fence[2].strip())
    text = re.sub(r"^#+\s*(?:\d+[.)]\s*)?|^(?://|--|#|\*|-)\s+", "", line.strip())
    text = _LABEL.sub("", unquote(text).rstrip(":")).strip()
    text = unquote(text)
    if _looks_like_path(text):
        return text
    quoted = [found for found in re.findall(r"`([^`]+)`", line) if _looks_like_path(found)]
    return quoted[0] if len(quoted) == 1 else None


def _on_fence(info: str) -> str | None:
    """The path in a fence's info string: ``py a/b.py``, ``py:a/b.py``, ``py title="a/b.py"``, ``a/b.py``."""
    words = [unquote(re.sub(r"^(?:title|file|path|filename)=", "", word)) for word in info.split()]
    if len(words) == 1 and ":" in words[0]:
        words = [words[0].partition(":")[2]]
    found = [word for word in words if _looks_like_path(word)]
    return found[0] if len(found) == 1 else None


def _looks_like_path(text: str) -> bool:
    if not text or re.search(r"[\s()<>|*?\"']", text) or "://" in text or len(text) > 1000:
        return False
    if text in _BARE:
        return True
    return bool("/" in text.strip("/") or re.search(r"\w\.\w|^\.\w", text)) and not text.endswith((".", ",", "/"))
