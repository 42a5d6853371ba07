"""What a check has to say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]
_ORDER: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that stands in the way or costs something.

    ``check`` is a stable name; an ``error`` means that a start would fail, or serve worse than nothing. ``what`` is
    what was found, ``why`` what it means for the user, ``fix`` what to do.
    """

    check: str
    severity: Severity
    what: str
    why: str
    fix: str

    def __str__(self) -> str:
        return " ".join(part for part in (self.what, self.why) if part)


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Errors first, then warnings, then notes; within these as they were found."""
    return tuple(sorted(findings, key=lambda finding: _ORDER[finding.severity]))


def errors(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Those that forbid a start."""
    return tuple(finding for finding in findings if finding.severity == "error")
