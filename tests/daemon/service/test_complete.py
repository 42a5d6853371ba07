"""Completions through the real daemon on a fake engine: bounded in time, ended early, behind a warm repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from support.daemon import Home, repository
from support.engine_probe import Probe

FILES = {f"m{number}.py": f"def function_{number}(value):\n    return value + {number}\n" for number in range(60)}


def complete(home: Home, **body: Any) -> Any:
    transport = httpx.HTTPTransport(uds=str(home.runtime / "api.sock"))
    with httpx.Client(transport=transport, base_url="http://daemon", timeout=60) as http:
        asked = {"path": "a.py", "language": "python", "prefix": "def f():\n    ", "suffix": "\n", **body}
        answer = http.post("/v1/complete", json=asked)
        answer.raise_for_status()
        return answer.json()


def test_what_came_in_time_is_the_answer(make_home):
    home = make_home("--decode-speed", "10", LAGUNA_COMPLETION__TIMEOUT="2")
    home.json("start", "--wait", "--json")
    probe = Probe(home.runtime / "engine.sock")
    probe.answers({"when": "# a.py\ndef f():", "answer": "\n    a = 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9" * 20})
    found = complete(home)
    assert found["usage"]["finish_reason"] == "timeout"
    assert found["text"].startswith("a = 1") and found["usage"]["output_tokens"] < 64
    assert probe.running() == 0


def test_the_engine_stops_with_the_construct(make_home):
    home = make_home()
    home.json("start", "--wait", "--json")
    probe = Probe(home.runtime / "engine.sock")
    probe.answers({"when": "# a.py\ndef f():", "answer": "\n    return 1\n\ndef g():\n" + "    x = 2\n" * 200})
    found = complete(home, max_tokens=200)
    assert found["usage"]["finish_reason"] == "stop" and found["usage"]["output_tokens"] < 40
    assert found["text"].startswith("return 1\n")


def test_a_continuation_goes_on_where_the_cursor_is(make_home):
    home = make_home()
    home.json("start", "--wait", "--json")
    probe = Probe(home.runtime / "engine.sock")
    said = {
        "\n    return 1": "return 1",
        "\n\n    return 1": "return 1",
        "\n        return 1": "    return 1",  # as deep as the model means it
        "\n    if a:\n        b": "if a:\n        b",
        "\nreturn 1": "",  # the block is at its end
        "\n": "",
        " # and more\n    return 1": "",  # the line above is not
        "": "",
    }
    for answer, expected in said.items():
        probe.answers({"when": "# a.py\ndef f():", "answer": answer})
        assert complete(home, suffix="")["text"] == expected, answer
    probe.answers({"when": "x = ", "answer": " 1"})
    assert complete(home, prefix="x = ")["text"] == " 1"


def test_behind_a_repository_that_is_warm(make_home, tmp_path: Path):
    home = make_home(LAGUNA_WARM__AUTOMATIC="false")
    root = repository(tmp_path / "r", FILES)
    home.json("start", "--wait", "--json")
    asked = {"root": str(root), "scope": "repository"}
    cold = complete(home, **asked)["usage"]
    usage = home.json("ask", "What is this?", "--json", cwd=root)["usage"]
    warm = complete(home, **asked)["usage"]
    assert cold["prompt_tokens"] < usage["prompt_tokens"] / 2  # local: nobody waits for a repository to be read
    assert warm["prompt_tokens"] > usage["prompt_tokens"] / 2
    assert warm["cached_tokens"] > 0.8 * warm["prompt_tokens"]
    local = complete(home, root=str(root), scope="local")["usage"]
    assert local["prompt_tokens"] == cold["prompt_tokens"]
