"""``laguna-daemon ask`` as a user meets it, with the fake engine where the text must be known."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.daemon import COMMAND, Home, repository, until
from support.engine_probe import Probe

FILES = {
    "README.md": "# Lamp\n\nA lamp that can be switched on.\n",
    "lamp.py": "class Lamp:\n    def on(self) -> None:\n        self.lit = True\n",
}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "lamp", FILES)


@pytest.fixture
def engine(home: Home) -> Iterator[Probe]:
    home.json("start", "--wait", "--json")
    yield Probe(home.runtime / "engine.sock")


def test_the_answer_is_on_stdout_and_the_usage_on_stderr(home: Home, engine: Probe, repo: Path) -> None:
    engine.answers({"when": "What is this?", "answer": "It is a lamp.\nYes."})
    done = home.run("ask", "What is this?", cwd=repo)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "It is a lamp.\nYes.\n"
    last = done.stderr.strip().splitlines()[-1]
    assert "prompt tokens" in last
    assert "output tokens" in last


def test_the_daemon_is_started_by_the_first_question_and_progress_is_shown(home: Home, repo: Path) -> None:
    done = home.run("ask", "Anything", cwd=repo)
    assert done.returncode == 0, done.stderr
    assert "Engine:" in done.stderr
    assert home.daemon_pid()


def test_the_question_comes_from_arguments_and_standard_input(home: Home, engine: Probe, repo: Path) -> None:
    engine.answers({"when": "Explain this error\n\nTraceback: boom", "answer": "both"})
    assert home.run("ask", "Explain", "this", "error", input="Traceback: boom\n", cwd=repo).stdout == "both\n"
    engine.answers({"when": "only piped", "answer": "piped"})
    assert home.run("ask", input="only piped", cwd=repo).stdout == "piped\n"


def test_json_is_one_object_with_the_usage_of_the_contract(home: Home, engine: Probe, repo: Path) -> None:
    engine.answers({"when": "Q", "answer": "A"})
    found = home.json("ask", "Q", "--json", cwd=repo)
    assert found["text"] == "A"
    usage = found["usage"]
    assert set(usage) == {
        *("prompt_tokens", "cached_tokens", "prefilled_tokens", "output_tokens", "reasoning_tokens"),
        *("ttft_ms", "total_ms", "broke_at", "snapshot", "overlay_seq", "profile", "finish_reason"),
    }
    assert usage["prompt_tokens"] == usage["cached_tokens"] + usage["prefilled_tokens"]
    assert usage["finish_reason"] == "stop"
    assert usage["profile"] == "cpu"
    engine_count = engine.requests()[-1]["prompt"]
    assert usage["prompt_tokens"] == (engine_count if isinstance(engine_count, int) else len(engine_count))


def test_stream_json_is_one_object_a_line(home: Home, engine: Probe, repo: Path) -> None:
    engine.answers({"when": "Q", "answer": "one two three"})
    done = home.run("ask", "Q", "--stream-json", cwd=repo)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert "".join(event["text"] for event in events if event["kind"] == "text") == "one two three"
    assert events[-1]["kind"] == "usage"
    assert home.run("ask", "Q", "--json", "--stream-json", cwd=repo).returncode == 2


def test_without_context_nothing_of_the_repository_is_sent(home: Home, engine: Probe, repo: Path) -> None:
    small = home.json("ask", "Q", "--no-context", "--json", cwd=repo)["usage"]["prompt_tokens"]
    whole = home.json("ask", "Q", "--json", cwd=repo)["usage"]["prompt_tokens"]
    assert small < whole
    assert home.run("ask", "Q", "--no-context", cwd=home.folder).returncode == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--no-context", "--repo", "."), "without any repository"),
        (("--no-context", "--file", "a.py"), "without any repository"),
        (("--file", "a.py:0"), "names no lines"),
        (("--file", "a.py:7-3"), "names no lines"),
    ],
)
def test_options_that_contradict_or_name_nothing_are_refused(
    home: Home, repo: Path, options: tuple[str, ...], said: str
) -> None:
    done = home.run("ask", "Q", *options, cwd=repo)
    assert done.returncode == 2
    assert said in done.stderr


def test_ctrl_c_aborts_the_generation_in_the_engine(make_home, repo: Path) -> None:
    home = make_home("--decode-speed", "20")
    home.json("start", "--wait", "--json")
    engine = Probe(home.runtime / "engine.sock")
    engine.answers({"when": "count", "answer": "one two three four five six seven eight nine " * 40})
    asking = home.popen("ask", "count", cwd=repo)
    until(lambda: engine.running() == 1)
    asking.send_signal(signal.SIGINT)
    asking.communicate(timeout=20)
    assert asking.returncode == 130
    until(lambda: engine.running() == 0, timeout=5)


def test_a_killed_client_aborts_the_generation_too(make_home, repo: Path) -> None:
    home = make_home("--decode-speed", "20")
    home.json("start", "--wait", "--json")
    engine = Probe(home.runtime / "engine.sock")
    engine.answers({"when": "count", "answer": "one two three four five six seven eight nine " * 40})
    asking = home.popen("ask", "count", cwd=repo)
    until(lambda: engine.running() == 1)
    asking.kill()
    asking.communicate(timeout=20)
    until(lambda: engine.running() == 0, timeout=5)


def test_an_edit_is_in_the_next_prompt_and_the_prefix_is_reused(home: Home, engine: Probe, repo: Path) -> None:
    for number in range(40):
        (repo / f"module_{number}.py").write_text(f"# module {number}\n" + "value = 1\n" * 20)
    first = home.json("ask", "Q", "--json", cwd=repo)["usage"]
    second = home.json("ask", "Q", "--json", cwd=repo)["usage"]
    assert second["cached_tokens"] == (second["prompt_tokens"] - 1) // 128 * 128
    (repo / "module_3.py").write_text("NEW_TEXT = 'fresh'\n")
    engine.answers({"when": "NEW_TEXT = 'fresh'", "answer": "seen"})
    answer = home.json("ask", "Q", "--json", cwd=repo)
    assert answer["text"] == "seen"
    assert answer["usage"]["snapshot"] == first["snapshot"]
    assert answer["usage"]["cached_tokens"] >= first["prompt_tokens"] // 128 * 128 - 128


def test_conversations_go_on_with_the_same_tokens(home: Home, engine: Probe, repo: Path) -> None:
    engine.answers({"when": "first", "answer": "one"}, {"when": "second", "answer": "two"})
    first = home.json("ask", "first", "--json", cwd=repo)
    second = home.json("ask", "second", "--conversation", first["conversation"], "--json", cwd=repo)
    assert second["text"] == "two"
    assert second["conversation"] == first["conversation"]
    assert second["usage"]["cached_tokens"] >= first["usage"]["prompt_tokens"] // 128 * 128
    unknown = home.run("ask", "third", "--conversation", "nonsense", cwd=repo)
    assert unknown.returncode == 2


class TestBadInput:
    def test_no_repository(self, home: Home) -> None:
        done = home.run("ask", "Q")
        assert done.returncode == 3
        assert "--repo" in done.stderr

    def test_a_folder_that_is_not_there(self, home: Home) -> None:
        assert home.run("ask", "Q", "--repo", str(home.folder / "nowhere")).returncode == 3

    def test_the_home_folder_is_refused_without_force(self, home: Home, engine: Probe) -> None:
        done = home.run("ask", "Q", "--repo", str(home.folder))
        assert done.returncode == 3
        assert "--force" in done.stderr

    def test_an_empty_repository_is_said_to_be_empty(self, home: Home, engine: Probe, tmp_path: Path) -> None:
        empty = repository(tmp_path / "empty", {})
        done = home.run("ask", "Q", cwd=empty)
        assert done.returncode == 0
        assert "no files" in done.stderr

    def test_a_question_of_no_bytes(self, home: Home, repo: Path) -> None:
        assert home.run("ask", "", cwd=repo).returncode == 2
        assert home.run("ask", cwd=repo, input="  \n").returncode == 2

    def test_a_question_larger_than_the_context(self, home: Home, engine: Probe, repo: Path) -> None:
        done = home.run("ask", input="word " * 40_000, cwd=repo)
        assert done.returncode == 5
        assert "tokens" in done.stderr
        assert home.run("ask", "--no-context", input="word " * 40_000, cwd=repo).returncode == 5

    @pytest.mark.parametrize("broken", ["missing", "no config", "broken tokenizer"])
    def test_a_model_folder_missing_or_broken(self, make_home, tmp_path: Path, repo: Path, broken: str) -> None:
        model = tmp_path / "model"
        if broken != "missing":
            model.mkdir()
            (model / "tokenizer.json").write_text("{")
        if broken == "broken tokenizer":
            (model / "config.json").write_text("{}")
        home = make_home(LAGUNA_ENGINE__MODEL=str(model))
        done = home.run("ask", "Q", cwd=repo)
        assert done.returncode == 4
        assert str(model) in done.stderr
        assert "Traceback" not in done.stderr

    def test_no_engine_installed(self, make_home, repo: Path) -> None:
        home = make_home(LAGUNA_ENGINE__COMMAND="[]", LAGUNA_ENGINE__MODEL="")
        del home.env["LAGUNA_ENGINE__COMMAND"], home.env["LAGUNA_ENGINE__MODEL"]
        done = home.run("ask", "Q", cwd=repo)
        assert done.returncode == 4
        assert "engine install" in done.stderr

    def test_an_engine_that_dies_at_start_is_reported_with_its_reason(self, make_home, repo: Path) -> None:
        home = make_home("--start-exit", "1")
        done = home.run("ask", "Q", cwd=repo, timeout=200)
        assert done.returncode == 4
        assert home.daemon_pid()  # the daemon itself stays up


def test_unknown_commands_and_flags_are_usage_errors(home: Home) -> None:
    assert home.run("frobnicate").returncode == 2
    assert home.run("ask", "Q", "--nonsense").returncode == 2
    assert home.run("--version").stdout.startswith("laguna-daemon ")


def test_an_infinite_temperature_is_a_refused_parameter(home: Home, repo: Path) -> None:
    done = home.run("ask", "Q", "--temperature", "inf", cwd=repo)
    assert (done.returncode, done.stdout) == (8, "")
    assert "temperature is inf" in done.stderr


def test_a_folder_that_is_gone_is_no_repository(home: Home, tmp_path: Path) -> None:
    code = (
        "import os, sys; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); os.execv(sys.argv[1], sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *COMMAND, "ask", "Q"],
        cwd=tmp_path,
        env=home.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "no longer exists" in done.stderr


def test_names_that_are_not_utf8(home: Home, engine: Probe, repo: Path) -> None:
    odd = os.fsdecode(b"caf\xe9.txt")
    (repo / odd).write_text("coffee\n")
    assert home.run("ask", "Q", cwd=repo).returncode == 0
    listed = [file["path"] for file in home.json("context", "--json", cwd=repo)["files"]]
    assert "caf\\udce9.txt" in listed
    asked = home.run("context", "why", odd, cwd=repo)
    assert (asked.returncode, asked.stdout) == (2, "")
    assert "not UTF-8" in asked.stderr


HOSTILE = "\x1b]0;title\x07\x1b[31mred\x9b2J\tü\n"
SHOWN = "\\x1b]0;title\\x07\\x1b[31mred\\x9b2J\tü\n"


def test_an_answer_does_not_command_the_terminal(home: Home, engine: Probe, repo: Path) -> None:
    engine.answers({"when": "Q", "answer": HOSTILE})
    main, terminal = pty.openpty()
    with contextlib.closing(os.fdopen(main, "rb", 0)) as screen:
        process = home.popen("ask", "Q", cwd=repo, stdout=terminal)
        os.close(terminal)
        process.wait(60)
        seen = screen.read(4096).decode().replace("\r\n", "\n")
    assert seen == SHOWN
    assert home.run("ask", "Q", cwd=repo).stdout == HOSTILE


def test_a_name_does_not_command_the_terminal(home: Home, engine: Probe, repo: Path) -> None:
    name = "a\x1b[31m\nb.txt"
    (repo / name).write_text("text\n")
    listed = home.run("context", "--all", cwd=repo).stdout
    assert r"a\x1b[31m\nb.txt" in listed
    assert "\x1b" not in listed + home.run("context", "why", name, cwd=repo).stdout


def test_output_that_cannot_be_written_is_said(home: Home, engine: Probe, repo: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        process = home.popen("ask", "Q", cwd=repo, stdout=full)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "No space left on device" in said.decode()
    assert "Traceback" not in said.decode()


def test_a_daemon_that_is_told_to_end_says_so_to_those_it_answers(make_home: Callable[..., Home], repo: Path) -> None:
    home = make_home("--decode-speed", "5")
    home.json("start", "--wait", "--json")
    probe = Probe(home.runtime / "engine.sock")
    asking = home.popen("ask", "Q", cwd=repo)
    until(probe.running)
    home.run("stop")
    _, said = asking.communicate(timeout=60)
    assert asking.returncode == 1
    assert "The daemon is ending" in said.decode() or "went away" in said.decode()
    assert "went wrong inside" not in said.decode()
