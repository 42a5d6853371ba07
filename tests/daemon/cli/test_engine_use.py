"""engine use and restart: another profile on a running daemon, what becomes of roots and of requests under way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.daemon import Home, repository, until
from support.engine_probe import Probe

OTHER = 'extends = "cpu"\nsummary = "a shorter context"\n[flags]\nmax-model-len = 6144\n[budget]\ncontext = 6144\n'


@pytest.fixture
def home(home: Home) -> Home:
    """A home whose profile is not named in the settings, so that the GPUs decide: there are none, or none fits."""
    del home.env["LAGUNA_PROFILE"]
    return with_profile(home)


def with_profile(home: Home) -> Home:
    """The home with a second profile, `other`."""
    profiles = home.folder / "config" / "laguna-daemon" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "other.toml").write_text(OTHER)
    return home


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "lamp", {"lamp.py": "VALUE = 1\n" * 40, "README.md": "# Lamp\n"})


def engine(home: Home) -> dict[str, Any]:
    found: dict[str, Any] = home.json("status", "--json")["engine"]
    return found


def test_another_profile_on_a_running_daemon(home: Home, repo: Path) -> None:
    home.env["LAGUNA_PROFILE"] = "cpu"
    first = home.json("start", "--wait", "--json")
    del home.env["LAGUNA_PROFILE"]
    home.json("ask", "one", "--json", "--max-tokens", "4", cwd=repo)
    used = home.json("engine", "use", "other", "--json")
    assert (used["engine"]["profile"], used["engine"]["reason"]) == ("other", "chosen with laguna-daemon engine use")
    second = home.json("start", "--wait", "--json")
    assert second["pid"] == first["pid"], "the daemon is the same, its engine is another"
    assert second["engine"]["pid"] != first["engine"]["pid"]
    assert second["engine"]["context"] == 6144
    assert second["workspaces"] == [], "roots are read anew under the other budget"
    answer = home.json("ask", "two", "--json", "--max-tokens", "4", cwd=repo)
    assert answer["usage"]["profile"] == "other"


def test_the_choice_outlives_the_daemon_and_auto_forgets_it(home: Home) -> None:
    assert home.json("engine", "use", "other", "--json") == {"profile": "other", "engine": None}
    assert home.json("start", "--wait", "--json")["engine"]["profile"] == "other"
    home.run("stop")
    assert (home.folder / "state" / "profile").read_text() == "other\n"
    assert "The next daemon" in home.run("engine", "use", "auto").stderr
    assert not (home.folder / "state" / "profile").exists()


def test_the_settings_win_at_the_next_start_and_it_is_said(home: Home) -> None:
    config = home.folder / "config" / "laguna-daemon" / "config.toml"
    config.write_text('# mine\nprofile = "cpu"  # always\n')
    done = home.run("engine", "use", "other")
    assert "The settings name the profile cpu: at the daemon's next start they win." in done.stderr
    assert config.read_text() == '# mine\nprofile = "cpu"  # always\n'
    assert home.json("start", "--wait", "--json")["engine"]["profile"] == "cpu"


def test_what_the_checks_refuse_changes_nothing(home: Home) -> None:
    home.env["LAGUNA_PROFILE"] = "cpu"
    before = home.json("start", "--wait", "--json")["engine"]
    done = home.run("engine", "use", "laguna-s-2.1-4x24gb")
    assert done.returncode == 4
    assert "The checkpoints Laguna-S-2.1-DFlash-INT4 are not there" in done.stderr
    after = engine(home)
    assert (after["pid"], after["phase"], after["profile"]) == (before["pid"], "ready", "cpu")
    assert not (home.folder / "state" / "profile").exists()
    assert home.run("engine", "use", "nothing").returncode == 2


def test_a_request_under_way_is_told_what_happened(make_home: Callable[..., Home], repo: Path) -> None:
    home = with_profile(make_home("--decode-speed", "5"))
    home.json("start", "--wait", "--json")
    probe = Probe(home.runtime / "engine.sock")
    probe.answers({"when": "story", "answer": "once upon a time " * 200})
    asking = home.popen("ask", "a long story", "--json", cwd=repo)
    until(lambda: probe.running() == 1)
    home.json("engine", "use", "other", "--json")
    _, said = asking.communicate(timeout=30)
    assert asking.returncode == 4
    assert b"The engine was ended while this was being answered; it starts again with the profile other." in said


def test_restart_keeps_profile_and_roots(home: Home, repo: Path) -> None:
    home.env["LAGUNA_PROFILE"] = "cpu"
    assert home.run("engine", "restart").returncode == 4
    first = home.json("start", "--wait", "--json")
    home.json("ask", "one", "--json", "--max-tokens", "4", cwd=repo)
    assert json.loads(home.run("engine", "restart", "--json").stdout)["profile"] == "cpu"
    second = home.json("start", "--wait", "--json")
    assert second["engine"]["pid"] != first["engine"]["pid"]
    assert [root["root"] for root in second["workspaces"]] == [str(repo)]
    again = home.json("ask", "two", "--json", "--max-tokens", "4", cwd=repo)
    assert again["usage"]["profile"] == "cpu"


def test_an_idle_engine_is_unloaded_and_the_next_request_wakes_it(home: Home, repo: Path) -> None:
    home.env |= {"LAGUNA_PROFILE": "cpu", "LAGUNA_DAEMON__IDLE_UNLOAD": "2"}
    home.json("start", "--json")
    found = until(lambda: (now := engine(home))["detail"].startswith("unloaded") and now, timeout=60)
    assert (found["phase"], found["pid"]) == ("stopped", None)
    answer = home.json("ask", "one", "--json", "--max-tokens", "4", cwd=repo)
    assert answer["usage"]["output_tokens"] > 0
    until(lambda: engine(home)["detail"].startswith("unloaded"), timeout=60)


def test_no_engine_is_unloaded_by_default(home: Home) -> None:
    from laguna_daemon.config import Settings

    assert Settings().daemon.idle_unload == 0
