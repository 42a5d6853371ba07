"""Telling a wedged engine from a busy one."""

from __future__ import annotations

from laguna_daemon.engine.diagnosis import Diagnosis
from laguna_daemon.engine.metrics import Metrics

_ADVICE = "It is started again; if this repeats, look at its log (laguna-daemon logs) and the GPU's."
_SICK = 10.0  # seconds that an engine's core gets to take its server with it


class WedgeWatch:
    """Says when an engine has had work, and moved no counter, for ``seconds``.

    A long prefill moves the KV usage with every step, decoding the generated tokens; so both count as movement.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._last: tuple[float, ...] | None = None
        self._moved: float | None = None
        self._silent: float | None = None
        self._sick: float | None = None

    def look(self, metrics: Metrics, now: float) -> Diagnosis | None:
        """Take a reading at ``now`` (monotonic seconds); a Diagnosis once the engine counts as wedged."""
        self._silent = None
        moved = metrics.movement != self._last
        self._last = metrics.movement
        if moved or self._moved is None or not metrics.running + metrics.waiting:
            self._moved = now
            return None
        if now - self._moved < self._seconds:
            return None
        return Diagnosis(
            "wedged",
            f"The engine had {metrics.running} running and {metrics.waiting} waiting requests "
            f"and did nothing for {self._seconds:.0f} s.",
            _ADVICE,
            False,
        )

    def health(self, healthy: bool, now: float) -> Diagnosis | None:
        """Note at ``now`` what an engine that answers says of itself: its server can outlive its core."""
        if healthy:
            self._sick = None
            return None
        self._sick = now if self._sick is None else self._sick
        if now - self._sick < min(_SICK, self._seconds):
            return None
        return Diagnosis("dead", "The engine's core has died: it says that it cannot serve.", _ADVICE, False)

    def silence(self, now: float) -> Diagnosis | None:
        """Note at ``now`` that the engine did not answer; a Diagnosis once that has lasted too long."""
        if self._silent is None:
            self._silent = now
        if now - self._silent < self._seconds:
            return None
        return Diagnosis("wedged", f"The engine did not answer for {self._seconds:.0f} s.", _ADVICE, False)
