"""How long the next segment of a prefill should be."""

from __future__ import annotations

import statistics
from collections import deque

TARGET_S = 0.5  # aim of one segment where a prompt costs little to send
_LONGEST_S = 2.0  # and the most where it costs much: somebody watches the progress
_FIRST = 1024
_SMALLEST = 256
_FIXED = 1.3e-6
"""Seconds per prompt token, before any was measured: 0.25 s at 190,000 tokens through vLLM's server on one H200."""
_FIXED_SHARE = 1 / 10
_LONG = 4096  # a touch shorter than this says more about one step than about its prompt
_REMEMBERED = 4


class Pace:
    """Segment sizes from the times seen, in tokens; shared by all prefills of one engine.

    Each segment sends, reads and looks up the whole prompt again, which costs ``fixed`` seconds per token of it and is
    seen alone in touches, which compute nothing. A segment aims at ``target_s``, but is not so short that more than
    ``share`` of its time goes into that, until it would take two seconds.
    """

    def __init__(self, target_s: float = TARGET_S, first: int = _FIRST, share: float = _FIXED_SHARE) -> None:
        self._target = target_s
        self._first = first
        self._share = share
        self._touches: deque[float] = deque(maxlen=8)
        self._seen: deque[tuple[int, int, float]] = deque(maxlen=_REMEMBERED)

    def saw(self, end: int, tokens: int, seconds: float) -> None:
        """One segment that computed the last ``tokens`` of ``end``."""
        if tokens >= _SMALLEST // 2 and seconds > 0:
            self._seen.append((end, tokens, seconds))

    def touched(self, end: int, seconds: float) -> None:
        """A request of ``end`` tokens that computed next to nothing."""
        if end >= _LONG and seconds > 0:
            self._touches.append(seconds / end)

    def fixed(self, end: int) -> float:
        """Seconds that a request of ``end`` tokens takes before it computes anything: what the quickest touch took,
        since others were beside other work."""
        return min(self._touches, default=_FIXED) * end

    def size(self, start: int) -> int:
        """Tokens of a segment that begins at ``start``; at most twice or half of the latest, since times are noisy."""
        if not self._seen:
            return self._first
        fixed = self.fixed(start)
        computing = min(max(self._target - fixed, fixed * (1 / self._share - 1)), max(fixed, _LONGEST_S - fixed))
        wanted = computing / self._each()
        last = self._seen[-1][1]
        return int(min(max(wanted, last / 2, _SMALLEST), last * 2))

    def _each(self) -> float:
        """Seconds for one token computed, of late; the first request of an engine can take ten times as long."""
        found = (max(seconds - self.fixed(end), seconds / 4) / tokens for end, tokens, seconds in self._seen)
        return statistics.median_low(found)
