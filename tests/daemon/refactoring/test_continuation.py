"""Answers that stop at their limit: continued from their own ids, or asked for again; never applied in part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.daemon import Home, git, repository
from support.engine_probe import Probe
from support.scripts import block, create

INSTRUCTION = "Make the poem longer"
CUT = "broke off inside the block"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(
        tmp_path / "poem", {"poem.txt": "roses\nviolets\n", "read.py": "print(open('poem.txt').read())\n"}
    )


def events(home: Home, repo: Path, *args: str, code: int = 0) -> list[dict[str, Any]]:
    done = home.run("refactor", INSTRUCTION, "--apply", "--stream-json", *args, cwd=repo)
    assert done.returncode == code, (done.stdout, done.stderr, home.daemon_log())
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_cut_block_goes_on_where_it_stopped(home: Home, engine: Probe, repo: Path) -> None:
    whole = block("poem.txt", "violets", "violets are blé\nand 中文 bleu")
    parts = [whole[:60], whole[60:75], whole[75:]]
    assert "".join(parts) == whole
    engine.answers(
        {"when": INSTRUCTION, "answer": parts[0], "finish": "length"},
        {"when": parts[0], "answer": parts[1], "finish": "length"},
        {"when": parts[1], "answer": parts[2]},
    )
    found = events(home, repo)
    (turn,) = [event for event in found if event["kind"] == "turn"]
    assert turn["continued"] == 2
    assert turn["usage"]["finish_reason"] == "stop"
    assert (repo / "poem.txt").read_text() == "roses\nviolets are blé\nand 中文 bleu\n"
    first, second, third = engine.requests()[-3:]
    assert second["prompt"] == first["prompt"] + first["output"]
    assert third["prompt"] == second["prompt"] + second["output"]
    assert turn["usage"]["output_tokens"] == sum(len(one["output"]) for one in (first, second, third))


def test_a_character_cut_in_two_is_one_again(home: Home, engine: Probe, repo: Path) -> None:
    from laguna_context.tokens import load_tokenizer

    tokenizer = load_tokenizer(Path(home.env["LAGUNA_ENGINE__MODEL"]))
    whole = block("poem.txt", "violets", "violets 🪻🪻")
    ids = [int(one) for one in tokenizer.encode(whole)]
    cut = next(
        n for n in range(1, len(ids)) if tokenizer.decode(ids[:n])[-1] >= 0x80 and not _valid(tokenizer, ids[:n])
    )
    start = tokenizer.decode(ids[: cut - 1]).decode(errors="ignore")[-12:]
    engine.answers(
        {"when": INSTRUCTION, "ids": ids[:cut], "answer": "", "finish": "length"},
        {"when": start, "ids": [*ids[cut:], 24], "answer": ""},
    )
    events(home, repo)
    assert (repo / "poem.txt").read_text() == "roses\nviolets 🪻🪻\n"


def _valid(tokenizer: Any, ids: list[int]) -> bool:
    try:
        tokenizer.decode(ids).decode()
    except UnicodeDecodeError:
        return False
    return True


def test_an_answer_that_never_ends_is_bounded_and_its_last_block_is_asked_for_again(
    home: Home, engine: Probe, repo: Path
) -> None:
    good = block("read.py", "print(open('poem.txt').read())", "print(open('poem.txt').read().strip())")
    endless = good + "<<<<<<< SEARCH poem.txt\nroses\n=======\n" + "and more and more\n" * 400
    engine.answers(
        {"when": INSTRUCTION, "answer": endless, "finish": "length"},
        {"when": "and more and more\n" * 3, "answer": "and more and more\n" * 400, "finish": "length"},
        {"when": CUT, "answer": block("poem.txt", "roses", "roses are red")},
        {
            "when": f"{INSTRUCTION}\nEdits of these files are done",
            "answer": block("poem.txt", "roses", "roses are red"),
        },
    )
    found = events(home, repo)
    rounds = [event["reason"] for event in found if event["kind"] == "round"]
    assert rounds[0] == "the instruction"
    assert rounds[1].startswith("an answer that broke off")
    assert (repo / "poem.txt").read_text() == "roses are red\nviolets\n"
    assert "strip" in (repo / "read.py").read_text(), "the block that was whole is kept"
    context = 8192
    assert all(len(one["prompt"]) + one["max_tokens"] <= context for one in engine.requests())


def test_what_stays_cut_is_refused(home: Home, engine: Probe, repo: Path) -> None:
    cut = create("new.txt", "a line\n" * 2000)
    engine.answers({"when": "a", "answer": cut, "finish": "length"})
    found = events(home, repo, "--max-rounds", "1", code=6)
    report = found[-1]
    assert report["outcome"] == "refused"
    assert report["refused"][-1]["code"] == "cut off"
    assert git(repo, "status", "--porcelain") == ""
