"""Ctrl-C and SIGKILL at any moment: nothing written, or all of it, and what was left half is ended."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.daemon import COMMAND, Home, git, repository, until
from support.engine_probe import Probe
from support.scripts import block

INSTRUCTION = "Rename `one` to `uno`"
FILES = {f"f{n}.txt": f"one {n}\n" for n in range(6)}
ANSWER = "".join(block(name, text.strip(), text.strip().replace("one", "uno")) for name, text in FILES.items())
APPLY = """
import os, signal, sys
from pathlib import Path
from laguna_daemon import edits
from laguna_daemon.paths import journal_dir

root, stop = Path(sys.argv[1]), sys.argv[2]

def step(name):
    if name == stop:
        os.kill(os.getpid(), signal.SIGKILL)

made = edits.plan(root, edits.parse(sys.stdin.read()).blocks)
edits.apply(made, journal_dir(), step=step)
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", FILES)


@pytest.fixture
def slow(make_home: Any) -> Home:
    home = make_home("--decode-speed", "30")
    home.json("start", "--wait", "--json")
    Probe(home.runtime / "engine.sock").answers({"when": INSTRUCTION, "answer": ANSWER})
    return home


def texts(repo: Path) -> set[str]:
    return {path.read_text().split()[0] for path in repo.glob("*.txt")}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ended_while_the_model_writes(slow: Home, repo: Path, number: signal.Signals) -> None:
    engine = Probe(slow.runtime / "engine.sock")
    working = slow.popen("refactor", INSTRUCTION, "--apply", cwd=repo)
    until(lambda: engine.running() == 1)
    working.send_signal(number)
    working.communicate(timeout=20)
    assert working.returncode == (130 if number == signal.SIGINT else -9)
    until(lambda: engine.running() == 0, timeout=5)
    assert git(repo, "status", "--porcelain") == ""
    assert slow.json("edits", "list", "--json", cwd=repo)["edits"] == []


def test_ctrl_c_during_the_check_takes_the_edits_back(home: Home, engine: Probe, repo: Path, tmp_path: Path) -> None:
    engine.answers({"when": INSTRUCTION, "answer": ANSWER})
    mark = tmp_path / "running"
    working = home.popen("refactor", INSTRUCTION, "--apply", "--check", f"touch {mark}; exec sleep 60", cwd=repo)
    until(mark.exists)
    assert texts(repo) == {"uno"}
    working.send_signal(signal.SIGINT)
    _, said = working.communicate(timeout=20)
    assert working.returncode == 130
    assert b"undone" in said
    assert git(repo, "status", "--porcelain") == ""


def kill_while_writing(home: Home, repo: Path, stop: str) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", APPLY, str(repo), stop], input=ANSWER.encode(), env=home.env, check=False
    )
    assert killed.returncode == -signal.SIGKILL


def settled(repo: Path) -> bool:
    """Never a mixture, and nothing left over."""
    return len(texts(repo)) == 1 and {path.name for path in repo.iterdir()} == {*FILES, ".git"}


@pytest.mark.parametrize(("stop", "wanted"), [("commit", "one"), ("place f3.txt", "uno"), ("done", "uno")])
def test_killed_while_writing_the_next_refactoring_ends_it(
    home: Home, engine: Probe, repo: Path, stop: str, wanted: str
) -> None:
    kill_while_writing(home, repo, stop)
    done = home.run("refactor", "nothing", "--dry-run", cwd=repo)
    assert "interrupted edit" in done.stderr
    assert texts(repo) == {wanted}
    assert settled(repo)


def test_killed_while_writing_the_next_look_at_the_history_ends_it(home: Home, repo: Path) -> None:
    kill_while_writing(home, repo, "place f3.txt")
    assert not settled(repo)
    assert "interrupted edit" in home.run("edits", "list", cwd=repo).stderr
    assert settled(repo)


def test_killed_while_writing_the_daemons_start_ends_it(make_home: Any, repo: Path) -> None:
    home = make_home()
    kill_while_writing(home, repo, "place f3.txt")
    home.json("start", "--json")
    until(lambda: settled(repo))
    assert texts(repo) == {"uno"}


@pytest.mark.parametrize(("typed", "wanted"), [(b"y\n", "uno"), (b"n\n", "one"), (b"\x03", "one")])
def test_on_a_terminal_it_asks_before_it_writes(
    home: Home, engine: Probe, repo: Path, typed: bytes, wanted: str
) -> None:
    engine.answers({"when": INSTRUCTION, "answer": ANSWER})
    main, terminal = pty.openpty()
    working = subprocess.Popen(
        [*COMMAND, "refactor", INSTRUCTION],
        cwd=repo,
        env={**home.env, "TERM": "xterm"},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    said = b""
    while b"[y/N]" not in said:
        said += os.read(main, 4096)
    assert b"\x1b[32m+uno 0\x1b[0m" in said, "the diff is coloured"
    assert texts(repo) == {"one"}, "nothing is written before the answer"
    if typed == b"\x03":
        working.send_signal(signal.SIGINT)
    else:
        os.write(main, typed)
    while True:
        try:
            if not os.read(main, 4096):
                break
        except OSError:
            break
    working.wait(timeout=20)
    os.close(main)
    assert working.returncode == (130 if typed == b"\x03" else 0)
    assert texts(repo) == {wanted}
