"""doctor from the shell: what it says of this machine, of another profile, and of a running engine."""

from __future__ import annotations

import json
from collections.abc import Callable

from support.daemon import Home


def test_without_an_engine_it_says_what_to_do(home: Home) -> None:
    env = {"LAGUNA_ENGINE__COMMAND": "null", "LAGUNA_ENGINE__MODEL": str(home.folder)}
    done = home.run("doctor", **env)
    assert done.returncode == 7
    assert "No engine is installed for the profile cpu" in done.stdout
    assert "laguna-daemon engine install cpu" in done.stdout


def test_another_profile_is_judged_without_touching_anything(home: Home) -> None:
    done = home.run("doctor", "--json", "--profile", "laguna-s-2.1-4x24gb")
    found = json.loads(done.stdout)
    assert done.returncode == 7
    assert (found["profile"], found["reason"], found["engine"]) == (
        "laguna-s-2.1-4x24gb",
        "named with --profile",
        "stopped",
    )
    assert not found["ok"]
    assert "gpus" in {finding["check"] for finding in found["findings"]}
    assert home.daemon_pid() is None


def test_a_running_engine_is_tried(home: Home) -> None:
    home.json("start", "--wait", "--json")
    found = home.json("doctor", "--json")
    tried = found["examination"]
    assert found["ok"] and found["engine"] == "ready"
    assert tried["cached_first"] == 0
    assert tried["cached_again"] == tried["reusable"] > 0
    assert tried["abort_s"] is not None
    assert (home.folder / "state" / "doctor.json").is_file()
    again = home.run("doctor")
    assert again.returncode == 0
    assert f"{tried['reusable']} of {tried['prompt_tokens']} tokens of a repeated prompt were reused" in again.stdout


def test_what_became_worse_is_warned_of(home: Home) -> None:
    home.json("start", "--wait", "--json")
    home.json("doctor", "--json")
    path = home.folder / "state" / "doctor.json"
    kept = json.loads(path.read_text())
    for examination in kept.values():
        examination["cached_again"] *= 10
    path.write_text(json.dumps(kept))
    done = home.run("doctor")
    assert done.returncode == 0
    assert "Prefixes are reused less well than before" in done.stdout


def test_a_start_that_a_check_forbids_says_why_at_once(make_home: Callable[..., Home]) -> None:
    # A start command of one's own may reach GPUs elsewhere: only the product's own needs them here.
    home = make_home(LAGUNA_PROFILE="laguna-s-2.1-4x24gb", LAGUNA_ENGINE__COMMAND="null")
    done = home.run("ask", "anything", "--no-context")
    assert done.returncode == 4
    assert "No NVIDIA GPU was found. The profile laguna-s-2.1-4x24gb needs 4 GPUs" in done.stderr
    assert "more: laguna-daemon doctor" in done.stderr
    status = home.json("status", "--json")
    assert status["engine"]["phase"] == "failed"
    assert status["engine"]["reason"] == "named in the settings"
