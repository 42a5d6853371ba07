"""The rows of the residency benchmark: what is asked, in which order. Each part leaves the repository warm.

A rig answers `run(row, prompt, output=1)` with the answer's ids and writes the row down: `residency.py` asks the
engine, `replay.py` only vLLM's bookkeeping of blocks. All prompts are lists of token ids.
"""

import random
from collections.abc import Callable
from typing import Protocol

Ids = list[int]
BLOCK = 16
QUESTION = 200
COMPLETION = 3000
SEGMENT = 8192
SETTLE = 64
ANCHORS = (25, 50, 75, 90)  # percent of the repository


class Rig(Protocol):
    def run(self, row: str, prompt: Ids, output: int = 1) -> Ids: ...


class Source:
    """Random ids, the same in every run: no two calls share a block."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def ids(self, count: int) -> Ids:
        return self._random.choices(range(100, 100_000), k=count)


def touch(rig: Rig, repo: Ids, new: Callable[[int], Ids]) -> None:
    """A one-token request of exactly the prefix makes its blocks the youngest; how much fits between two of them?"""
    rig.run("touch: repository", repo)
    for number in range(8):
        rig.run(f"touch: completion {number}", new(COMPLETION), 16)
        rig.run(f"touch: touch {number}", repo)
    rig.run("touch: question after eight completions, each touched", repo + new(QUESTION))
    for count in (2, 3):
        rig.run("touch: touch", repo)
        for number in range(count):
            rig.run(f"touch: untouched completion {number}", new(COMPLETION), 16)
        rig.run(f"touch: question after {count} untouched completions", repo + new(QUESTION))
    rig.run("touch: touch", repo)
    rig.run("touch: chat of 12,000 tokens elsewhere", new(12_000))
    rig.run("touch: question after it", repo + new(QUESTION))


def others(rig: Rig, repo: Ids, new: Callable[[int], Ids]) -> None:
    """Other work in one go, and a second repository back and forth."""
    rig.run("others: repository", repo + new(QUESTION))
    for number in range(4):
        rig.run(f"others: completion {number}", new(COMPLETION), 8)
    rig.run("others: question after four completions", repo + new(QUESTION))
    rig.run("others: chat of 30,000 tokens elsewhere", new(30_000))
    rig.run("others: question after it", repo + new(QUESTION))
    second = new(len(repo))
    rig.run("others: second repository", second + new(QUESTION))
    rig.run("others: first repository again", repo + new(QUESTION))
    rig.run("others: second repository again", second + new(QUESTION))
    rig.run("others: first repository once more", repo + new(QUESTION))


def repositories(rig: Rig, repo: Ids, new: Callable[[int], Ids]) -> None:
    """Two repositories in turn. Each is settled, that is asked once more while it is in the pool: before 0.25.1's
    offloading has seen a prefix twice, its copy in host memory has holes."""
    rig.run("repositories: settle the first", repo + new(SETTLE))
    second = new(len(repo))
    rig.run("repositories: second, cold", second + new(QUESTION))
    rig.run("repositories: settle the second", second + new(SETTLE))
    for number in range(3):
        for name, tokens in (("first", repo), ("second", second)):
            rig.run(f"repositories: {name}, turn {number}", tokens + new(QUESTION))
            for completion in range(4):
                rig.run(f"repositories: completion {completion}", new(COMPLETION), 8)


def branch(rig: Rig, repo: Ids, new: Callable[[int], Ids]) -> None:
    """An edit inside the snapshot, as a compaction with its cut there makes it; prefilled in one request."""
    rig.run("branch: repository", repo + new(QUESTION))
    changed = repo
    for share in (97, 90, 50, 10):
        cut = len(repo) * share // 100
        changed = changed[:cut] + new(len(repo) - cut)
        rig.run(f"branch: at {share}%", changed + new(QUESTION))
        rig.run(f"branch: at {share}%, next question", changed + new(QUESTION))
    rig.run("branch: the first repository again", repo + new(QUESTION))


def anchors(rig: Rig, repo: Ids, new: Callable[[int], Ids]) -> None:
    """Prefill in segments and touch chosen cuts before each, so that a later branch finds its window at the cut."""
    changed = new(len(repo))
    cuts = [len(repo) * share // 100 // BLOCK * BLOCK for share in ANCHORS]
    prefill(rig, changed, 0, cuts)
    rig.run("anchors: question", changed + new(QUESTION))
    for cut in (cuts[-1], cuts[1]):
        share = round(100 * cut / len(repo))
        changed = changed[:cut] + new(len(repo) - cut)
        prefill(rig, changed, cut, cuts)
        rig.run(f"anchors: question after the branch at {share}%", changed + new(QUESTION))


def prefill(rig: Rig, prompt: Ids, done: int, cuts: list[int]) -> None:
    """Prefill `prompt` in segments from `done` on; before each, touch the cuts already passed."""
    for end in sorted({*range(done + SEGMENT, len(prompt), SEGMENT), *cuts, len(prompt)}):
        if end <= done:
            continue
        for cut in cuts:
            if cut <= done:
                rig.run(f"anchors: touch {cut:,}", prompt[:cut])
        rig.run(f"anchors: segment to {end:,}", prompt[:end])
        done = end


def answer(rig: Rig, repo: Ids, new: Callable[[int], Ids]) -> None:
    """A long answer, then another question of the same conversation and one that starts anew.

    A long answer is stood in for by a prompt that holds it: it takes the same blocks. A real one is decoded first.
    """
    repo = repo[:182_000]
    rig.run("answer: repository of 182,000", repo + new(QUESTION))
    question = repo + new(QUESTION)
    said = rig.run("answer: 600 tokens, decoded", question, 600)
    rig.run("answer: next turn after it", question + said + new(100))
    rig.run("answer: new question after it", repo + new(QUESTION))
    for length in (2000, 8000, 14_000):
        rig.run("answer: touch", repo)
        rig.run(f"answer: {length:,} tokens", repo + new(QUESTION + length))
        rig.run(f"answer: new question after {length:,}", repo + new(QUESTION))
    rig.run("answer: touch", repo)
    long = new(QUESTION + 14_000)
    for end in (4000, 8000, 12_000, len(long)):
        rig.run(f"answer: of 14,000, up to {end:,}", repo + long[:end])
        rig.run("answer: touch meanwhile", repo)
    rig.run("answer: new question after 14,000, touched", repo + new(QUESTION))


PARTS = {
    "touch": touch,
    "repositories": repositories,
    "others": others,
    "branch": branch,
    "anchors": anchors,
    "answer": answer,
}


def ask(rig: Rig, parts: list[str], tokens: int, seed: int = 7) -> None:
    """Prefill a repository of `tokens` random tokens, then go through `parts`."""
    source = Source(seed)
    repo = source.ids(tokens)
    rig.run("repository, cold", repo + source.ids(QUESTION))
    for part in parts:
        PARTS[part](rig, repo, source.ids)
