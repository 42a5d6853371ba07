"""What fits into the engine's KV pool, in blocks and tokens.

All KV groups of a model share one pool of blocks; a block holds `block_size` tokens of one group. A request holds the
whole length in the full-attention group and a window in each sliding one; tokens computed take blocks of every group
(docs/residency.md, with the measurements these formulas reproduce).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pool:
    """`blocks`: of the whole pool; `groups`: KV groups; `window`: blocks that the sliding groups hold at one place,
    all together; `batch`: the most tokens that one step computes of a request."""

    blocks: int
    block_size: int
    groups: int = 1
    window: int = 0
    batch: int = 2048

    @property
    def usable(self) -> int:
        """Blocks for requests: vLLM keeps one for itself."""
        return max(0, self.blocks - 1)

    def resting(self, tokens: int, anchors: int = 0) -> int:
        """Blocks that make a prefix of `tokens` findable at its end, and at `anchors` places before."""
        return -(-tokens // self.block_size) + self.window * (1 + anchors)

    def running(self, tokens: int) -> int:
        """The most blocks that a request of `tokens` tokens, its answer included, holds while it runs."""
        step = -(-min(tokens, self.batch) // self.block_size)
        return self.resting(tokens) + (self.groups - 1) * step

    def slack(self, resting: int) -> int:
        """Tokens of other work that can be computed before blocks of prefixes that take `resting` are reused."""
        return max(0, self.usable - resting) * self.block_size // self.groups

    def tokens(self) -> int:
        """The longest single request."""
        step = (self.groups - 1) * -(-self.batch // self.block_size)
        return max(0, self.usable - self.window - step) * self.block_size
