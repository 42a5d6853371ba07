"""What an installation reports while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One look at a running installation.

    ``stage`` is a stable word (cost, wait, environment, download, install, verify, model, done); ``done`` and
    ``total`` count ``unit`` and are zero where nothing is counted.
    """

    stage: str
    message: str
    done: int = 0
    total: int = 0
    unit: str = ""


Progress = Callable[[Step], None]


def silent(step: Step) -> None:
    """Report nothing."""
