"""A prefix cache as vLLM keeps it: blocks of tokens, chained hashes, least recently used first out.

The order of the free list is vLLM's own: a request's blocks are freed last block first; blocks that hold no whole,
computed block go to the front, the others to the back.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice


@dataclass
class Block:
    number: int
    users: int = 0
    key: bytes | None = None


@dataclass
class Held:
    """The blocks of one request, and how many of its tokens are computed."""

    blocks: list[Block] = field(default_factory=list)
    computed: int = 0
    keyed: int = 0
    keys: list[bytes] = field(default_factory=list)


class Pool:
    """`blocks` blocks of `size` tokens."""

    def __init__(self, blocks: int, size: int) -> None:
        self.size = size
        self.blocks = blocks
        self._free: OrderedDict[int, Block] = OrderedDict((n, Block(n)) for n in range(blocks))
        self._cached: dict[bytes, dict[int, Block]] = {}

    @property
    def free(self) -> int:
        return len(self._free)

    @property
    def usage(self) -> float:
        return 1 - len(self._free) / self.blocks if self.blocks else 0.0

    def keys(self, ids: Sequence[int], salt: str, known: Sequence[bytes] = ()) -> list[bytes]:
        """Chained hashes of all whole blocks of `ids`; `known` are those computed before."""
        keys = list(known)
        parent = keys[-1] if keys else hashlib.sha256(salt.encode()).digest()
        for start in range(len(keys) * self.size, len(ids) - self.size + 1, self.size):
            text = ",".join(map(str, ids[start : start + self.size]))
            parent = hashlib.sha256(parent + text.encode()).digest()
            keys.append(parent)
        return keys

    def hits(self, keys: Sequence[bytes], tokens: int) -> list[Block]:
        """Cached blocks at the front of a prompt; its last token is always computed anew."""
        found: list[Block] = []
        for key in islice(keys, (tokens - 1) // self.size):
            blocks = self._cached.get(key)
            if not blocks:
                break
            found.append(next(iter(blocks.values())))
        return found

    def room_for(self, keys: Sequence[bytes], tokens: int) -> bool:
        """Whether a whole prompt fits now."""
        hits = self.hits(keys, tokens)
        idle = sum(block.users == 0 for block in hits)
        return -(-tokens // self.size) - len(hits) <= self.free - idle

    def take_hits(self, held: Held, keys: Sequence[bytes], tokens: int) -> int:
        """Give a request its cached blocks; the number of tokens they hold."""
        for block in self.hits(keys, tokens):
            self._free.pop(block.number, None)
            block.users += 1
            held.blocks.append(block)
        held.computed = held.keyed = len(held.blocks) * self.size
        held.keyed = len(held.blocks)
        return held.computed

    def extend(self, held: Held, tokens: int) -> bool:
        """Give a request blocks for `tokens` tokens in all; False, and nothing changed, if there are too few."""
        need = -(-tokens // self.size) - len(held.blocks)
        if need > len(self._free):
            return False
        for _ in range(need):
            _, block = self._free.popitem(last=False)
            self._forget(block)
            block.users = 1
            held.blocks.append(block)
        return True

    def computed(self, held: Held, keys: Sequence[bytes], tokens: int) -> None:
        """The first `tokens` tokens of a request are computed: its whole blocks can be found from now on."""
        held.computed = tokens
        for index in range(held.keyed, tokens // self.size):
            block = held.blocks[index]
            block.key = keys[index]
            self._cached.setdefault(block.key, {})[block.number] = block
        held.keyed = max(held.keyed, tokens // self.size)

    def release(self, held: Held) -> None:
        """Free a request's blocks."""
        first: list[Block] = []
        for block in reversed(held.blocks):
            block.users -= 1
            if block.users:
                continue
            if block.key is None:
                first.append(block)
            else:
                self._free[block.number] = block
        for block in reversed(first):
            self._free[block.number] = block
            self._free.move_to_end(block.number, last=False)
        held.blocks.clear()
        held.computed = held.keyed = 0

    def reset(self) -> bool:
        """Forget everything; False while blocks are in use."""
        if len(self._free) != self.blocks:
            return False
        for block in self._free.values():
            self._forget(block)
        return True

    def _forget(self, block: Block) -> None:
        if block.key is None:
            return
        blocks = self._cached[block.key]
        del blocks[block.number]
        if not blocks:
            del self._cached[block.key]
        block.key = None
