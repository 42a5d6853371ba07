"""A small history replayed against the real engine: what it finds in its cache is what the prompts share, block for
block."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np

from laguna_context.prompt import Prompt
from laguna_context.template import load_template
from laguna_context.tokens import Ids, load_tokenizer
from laguna_context.workspace import Budget, Workspace
from laguna_daemon.engine.client import EngineClient, Finish, Sampling
from support.daemon import Home, git, repository

BLOCK = 128
BUDGET = Budget(context=4096, output=256, task=256, overlay=400)
FILES = {f"lamp/part_{n:02}.py": "".join(f"value_{n}_{i} = {i}\n" for i in range(24)) for n in range(12)}


def shared_blocks(earlier: list[Ids], ids: Ids) -> int:
    """Tokens in whole blocks that one of the earlier prompts starts with too; the last token is always computed."""
    longest = 0
    for other in earlier:
        size = min(other.size, ids.size - 1)
        differs = np.flatnonzero(other[:size] != ids[:size])
        longest = max(longest, int(differs[0]) if differs.size else size)
    return longest // BLOCK * BLOCK


async def cached(socket: Path, prompts: list[Prompt]) -> list[int]:
    """What the engine found in its cache for each prompt in turn."""
    client = EngineClient(socket=socket)
    out = []
    try:
        for prompt in prompts:
            async for piece in client.generate(prompt.ids, Sampling(max_tokens=1, temperature=0.0)):
                if isinstance(piece, Finish):
                    assert piece.prompt_tokens == prompt.ids.size
                    out.append(piece.cached_tokens)
    finally:
        await client.aclose()
    return out


def history(space: Workspace, root: Path) -> list[Prompt]:
    """A request after each of some commits: edits, a new file, a branch switch and back, a compaction."""
    prompts = [space.prompt("What is value 3?")]

    def ask(question: str) -> None:
        space.changed(None)
        prompts.append(space.prompt(question))

    ask("And again?")
    for number in range(3):
        path = root / "lamp" / "part_05.py"
        path.write_text(path.read_text().replace(f"value_5_{number} = ", f"other_{number} = "))
        git(root, "commit", "-qam", f"edit {number}")
        ask(f"What changed in edit {number}?")
    git(root, "checkout", "-q", "-b", "other", "HEAD~2")
    ask("What is on the other branch?")
    git(root, "checkout", "-q", "main")
    (root / "lamp" / "new.py").write_text("fresh = True\n" * 12)
    ask("What is new?")
    assert space.compact(force=True)
    ask("And after the compaction?")
    return prompts


def test_the_engine_caches_what_was_predicted(real_home: Home, tmp_path: Path) -> None:
    real_home.json("start", "--wait", "--json", timeout=900)
    named = real_home.env.get("LAGUNA_ENGINE__MODEL")
    model = Path(named) if named else next((Path(real_home.env["LAGUNA_DATA_DIR"]) / "models").iterdir())
    root = repository(tmp_path / "replayed", FILES)
    tokenizer = load_tokenizer(model)
    template = load_template(model, tokenizer)
    space = Workspace.open(
        root, tokenizer=tokenizer, template=template, budget=BUDGET, cache_dir=tmp_path / "cache", model="replay"
    )
    prompts = history(space, root)
    ids = [prompt.ids for prompt in prompts]
    predicted = [shared_blocks(ids[:number], one) for number, one in enumerate(ids)]
    found = asyncio.run(cached(real_home.runtime / "engine.sock", prompts))
    assert found[1:] == predicted[1:], "every block that was asked before, and no other"
    assert min(predicted[1:-1]) > 0.8 * ids[0].size, "or the replay shows nothing"
    assert space.compactions >= 1
