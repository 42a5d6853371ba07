"""How many tokens of other work a prefix survives, by bisection over replays (see `replay.py`).

For each repository size: the largest chat elsewhere, run of 1,000-token completions, answer, and distance of a branch
from the prefix's end after which the prefix (for a branch: the part before it) still comes from the cache; then whether
a chat prefilled in segments of 4,096 tokens, with a touch after each, leaves it there.

usage: slack.py [--sizes 190000,182000,150000]
"""

import argparse
import json

import replay
import rows

STEP = {"chat": 256, "completions": 1000, "answer": 256, "branch": 256}
CONTEXT = 204_000
SEGMENT = 4096
NEAR = 600  # tokens that a hit may fall short of the prefix: question, last block, window


class Warm:
    """A pool in which a repository was prefilled and touched."""

    def __init__(self, size: int) -> None:
        self.ledger = replay.Ledger(None, silent=True)
        self.new = rows.Source(3).ids
        self.repo = self.new(size)
        self.ledger.run("repository", self.repo + self.new(rows.QUESTION))
        self.touch()

    def touch(self) -> bool:
        self.ledger.run("touch", self.repo)
        return self.ledger.cached > len(self.repo) - NEAR

    def kept_after(self, kind: str, tokens: int) -> bool:
        run, new = self.ledger.run, self.new
        if kind == "branch":
            cut = len(self.repo) - tokens
            run(kind, self.repo[:cut] + new(tokens + rows.QUESTION))
            return self.ledger.cached > cut - NEAR
        if kind == "chat":
            run(kind, new(tokens))
        elif kind == "answer":
            run(kind, self.repo + new(rows.QUESTION + tokens))
        else:
            for _ in range(tokens // STEP[kind]):
                run(kind, new(STEP[kind]), 16)
        return self.touch()

    def kept_through(self, chat: int) -> bool:
        ids = self.new(chat)
        ends = [*range(SEGMENT, chat, SEGMENT), chat]
        kept = []
        for end in ends:
            self.ledger.run("segment", ids[:end])
            kept.append(self.touch())
        return all(kept)


def most(size: int, kind: str) -> int:
    """The largest amount of `kind`, in tokens, that leaves the prefix of `size` tokens in the cache."""
    low, high = 0, (CONTEXT - size if kind == "answer" else 60_000) // STEP[kind]
    while high - low > 1:
        middle = (low + high) // 2
        if Warm(size).kept_after(kind, middle * STEP[kind]):
            low = middle
        else:
            high = middle
    return low * STEP[kind]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="190000,182000,150000")
    for size in map(int, parser.parse_args().sizes.split(",")):
        for kind in STEP:
            print(json.dumps({"repository": size, "kind": kind, "most": most(size, kind)}), flush=True)
        for chat in range(8000, 28_001, 4000):
            kept = Warm(size).kept_through(chat)
            print(json.dumps({"repository": size, "chat in segments": chat, "kept": kept}), flush=True)


if __name__ == "__main__":
    main()
