"""Secrets and edits: a marker is never written over the value it stands for, and no refusal shows a secret."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from laguna_context.secrets import MARKER, forbidden, redact

__all__ = ["forbidden", "has_secret", "invented_markers", "markers", "without_secrets"]


def markers(lines: Iterable[str]) -> Counter[str]:
    """The redaction markers in some lines, counted by their text."""
    return Counter(match.group() for line in lines for match in MARKER.finditer(line))


def invented_markers(search: Iterable[str], replace: Iterable[str]) -> bool:
    """Whether ``replace`` writes a marker that does not already stand in the lines it replaces."""
    return bool(markers(replace) - markers(search))


def has_secret(text: str, path: str) -> bool:
    """Whether the model was shown this text with something taken out."""
    return bool(redact(text, path).findings)


def without_secrets(lines: Iterable[str], path: str) -> list[str]:
    """Lines (without endings) that may be shown to a model."""
    kept = list(lines)
    return redact("\n".join(kept), path).text.split("\n") if kept else kept
