"""How long to wait for the next keystroke before the model is asked."""

from __future__ import annotations

from collections import deque
from statistics import median
from typing import Literal

LEAST = 0.01
MOST = 0.4
_PAUSE = 1.0  # seconds; a longer gap is no rhythm
_FIRST_LATENCY = 0.15


class Debounce:
    """Adapts to the rhythm of typing and to the latency seen. All times in seconds.

    Asking is cheap when answers are quick: then only a share of the latency is waited. When they are slow, an answer
    that the next keystroke makes useless costs the engine more than the wait, so the wait grows to a little over the
    usual gap between keystrokes.
    """

    def __init__(self) -> None:
        self._gaps: deque[float] = deque(maxlen=16)
        self._latencies: deque[float] = deque([_FIRST_LATENCY], maxlen=8)
        self._last: float | None = None

    def typed(self, now: float) -> None:
        """A keystroke at monotonic time ``now``."""
        if self._last is not None and 0 < now - self._last < _PAUSE:
            self._gaps.append(now - self._last)
        self._last = now

    def answered(self, latency: float) -> None:
        """The engine took so long for a whole suggestion."""
        self._latencies.append(latency)

    def wait(self, setting: Literal["adaptive", "off"] | int, automatic: bool) -> float:
        """Seconds to wait; ``setting`` may fix them (in milliseconds). A request that the user makes never waits."""
        if not automatic or setting == "off":
            return 0.0
        if setting != "adaptive":
            return setting / 1000
        latency = median(self._latencies)
        wanted = latency / 4
        if self._gaps and latency > median(self._gaps):
            wanted = max(wanted, 1.2 * median(self._gaps))
        return min(MOST, max(LEAST, wanted))
