"""The main job on the real engine: ask, ask again, edit, ask; prompts equal to the engine's own to the token."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from laguna_context.listing import Selection
from laguna_context.prompt import Budget
from laguna_context.template import load_template
from laguna_context.tokens import load_tokenizer
from laguna_context.workspace import Workspace
from laguna_daemon.service.instructions import SYSTEM
from support.daemon import Home, git, repository, until
from support.engine_probe import Probe
from support.sdists import PINNED, unpacked

BLOCK = 128
ROOT = Path(__file__).parent.parent.parent
FILES = {
    "README.md": "# Lamp\n\nA lamp that can be switched on and off.\n",
    **{f"lamp/part_{n}.py": f'"""Part {n} of the lamp."""\n\nVALUE = {n}\n' * 4 for n in range(12)},
}


@pytest.fixture(scope="module")
def engine(real_home: Home) -> Iterator[Probe]:
    real_home.json("start", "--wait", "--json", timeout=900)
    yield Probe(real_home.runtime / "engine.sock")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "lamp", FILES)


def model_folder(home: Home) -> Path:
    named = home.env.get("LAGUNA_ENGINE__MODEL")
    return Path(named) if named else next((Path(home.env["LAGUNA_DATA_DIR"]) / "models").iterdir())


def ask(home: Home, repo: Path, question: str, *more: str) -> dict:
    return home.json("ask", question, "--json", "--max-tokens", "8", *more, cwd=repo)


def test_an_answer_streams_from_the_real_engine(real_home: Home, engine: Probe, repo: Path) -> None:
    done = real_home.run("ask", "What can the lamp do?", "--max-tokens", "16", cwd=repo)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "prompt tokens" in done.stderr


def test_a_second_question_reuses_every_whole_block_of_the_prefix(real_home: Home, engine: Probe, repo: Path) -> None:
    first = ask(real_home, repo, "What is VALUE in part 3?")["usage"]
    second = ask(real_home, repo, "And what does the README say?")["usage"]
    prefix = real_home.json("context", "--json", cwd=repo)["prefix_tokens"]
    assert prefix // BLOCK >= 4, "a prefix of some blocks, or this shows nothing"
    assert second["cached_tokens"] >= prefix // BLOCK * BLOCK
    assert second["snapshot"] == first["snapshot"]
    assert second["broke_at"] is None


def test_an_edit_costs_its_own_tokens_and_the_next_prompt_has_it(real_home: Home, engine: Probe, repo: Path) -> None:
    ask(real_home, repo, "one")
    (repo / "lamp" / "part_0.py").write_text("VALUE = 'first edit'\n")
    after_first = ask(real_home, repo, "two")["usage"]
    context = real_home.json("context", "--json", cwd=repo)
    kept = context["prefix_tokens"] + context["overlay_tokens"]
    (repo / "lamp" / "part_1.py").write_text("VALUE = 'second edit'\n")
    after_second = ask(real_home, repo, "three")["usage"]
    assert after_second["snapshot"] == after_first["snapshot"]
    assert after_second["overlay_seq"] > after_first["overlay_seq"]
    # The prefix and the earlier overlay are reused, up to the block that the new entry begins in.
    assert after_second["cached_tokens"] >= kept // BLOCK * BLOCK
    assert after_second["prefilled_tokens"] < 3 * BLOCK


def test_ctrl_c_reaches_the_real_engine(real_home: Home, engine: Probe, repo: Path) -> None:
    asking = real_home.popen("ask", "Tell a long story.", "--max-tokens", "900", cwd=repo)
    until(lambda: engine.running() == 1, timeout=60)
    asking.send_signal(signal.SIGINT)
    asking.communicate(timeout=20)
    assert asking.returncode == 130
    until(lambda: engine.running() == 0, timeout=5)


def test_the_usage_is_the_engines_own_count(real_home: Home, engine: Probe, repo: Path) -> None:
    usage = ask(real_home, repo, "Count.")["usage"]
    assert usage["prompt_tokens"] == usage["cached_tokens"] + usage["prefilled_tokens"]
    assert 1 <= usage["output_tokens"] <= 8
    assert usage["ttft_ms"] <= usage["total_ms"]


@pytest.mark.parametrize("which", ["this repository", *PINNED])
def test_the_prompt_is_what_the_engine_makes_of_the_same_messages(
    real_home: Home, engine: Probe, tmp_path: Path, which: str
) -> None:
    if which == "this repository":
        root = tmp_path / "clone"
        subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{ROOT}", str(root)], check=True)
    else:
        root = unpacked(which)
    folder = model_folder(real_home)
    tokenizer = load_tokenizer(folder)
    template = load_template(folder, tokenizer, SYSTEM)
    workspace = Workspace.open(
        root,
        tokenizer=tokenizer,
        template=template,
        budget=Budget(context=8192, output=1024, task=1024, overlay=600),
        cache_dir=tmp_path / "cache",
        # Test inputs that spell control tokens are ordinary text here and control tokens to /tokenize.
        selection=Selection(exclude=("tests/", "docs/")),
    )
    prompt = workspace.prompt("What is this for?")
    text = tokenizer.decode(prompt.ids).decode()
    head, tail = template.pieces[False].head, template.pieces[False].tail
    assert text.startswith(head) and text.endswith(tail)
    content = text[len(head) : len(text) - len(tail)]
    assert content.count("<document path=") >= 3
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": content}]
    assert np.array_equal(prompt.ids, np.asarray(engine.tokenize(messages), dtype=np.uint32))


def test_a_branch_switch_is_an_ordinary_change(real_home: Home, engine: Probe, repo: Path) -> None:
    git(repo, "checkout", "-q", "-b", "other")
    (repo / "README.md").write_text("# Lamp\n\nOn the other branch it is a lantern.\n")
    git(repo, "commit", "-qam", "lantern")
    before = ask(real_home, repo, "one")["usage"]
    git(repo, "checkout", "-q", "main")
    after = ask(real_home, repo, "two")["usage"]
    assert after["snapshot"] == before["snapshot"]
    assert after["cached_tokens"] >= before["prompt_tokens"] // BLOCK * BLOCK - 2 * BLOCK
