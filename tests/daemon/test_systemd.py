"""The systemd unit: valid in systemd's own eyes, for odd paths too, written and removed where systemd looks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from laguna_daemon import systemd
from support.daemon import Home


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings and units go here, and no systemd of this machine hears of it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def parsed(text: str) -> ConfigParser:
    unit = ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(text)
    return unit


def test_the_unit_says_what_to_run_and_how_it_ends() -> None:
    unit = parsed(systemd.unit_text({"LAGUNA_DATA_DIR": "/big disk/100%"}))
    service = unit["Service"]
    assert service["ExecStart"] == f'"{sys.executable}" -P -m laguna_daemon.process'
    assert service["Environment"] == '"LAGUNA_DATA_DIR=/big disk/100%%"'
    assert (service["Restart"], service["SuccessExitStatus"]) == ("on-failure", "75")
    assert service["KillMode"] == "mixed", "the daemon ends its engine itself"
    assert unit["Install"]["WantedBy"] == "default.target"


def test_systemd_finds_nothing_wrong_with_it(tmp_path: Path) -> None:
    path = tmp_path / systemd.NAME
    path.write_text(systemd.unit_text({"LAGUNA_STATE_DIR": '/a "quoted" $HOME \\ folder'}))
    tool = shutil.which("systemd-analyze")
    if tool is None:  # the parsed content is compared above
        assert parsed(path.read_text()).sections() == ["Unit", "Service", "Install"]
        return
    env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run([tool, "verify", "--user", path], capture_output=True, text=True, env=env, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_install_and_remove(config: Path) -> None:
    assert systemd.install() is False, "no systemd answers here"
    path = config / "systemd" / "user" / "laguna-daemon.service"
    assert "laguna_daemon.process" in path.read_text()
    assert systemd.remove() is True
    assert not path.exists()
    assert systemd.remove() is False


def test_from_the_shell(home: Home) -> None:
    shown = home.run("service", "show").stdout
    assert f"LAGUNA_RUNTIME_DIR={home.runtime}" in shown
    assert home.run("service", "install", PATH="/nowhere").returncode == 0
    assert (home.folder / "config" / "systemd" / "user" / "laguna-daemon.service").read_text() == shown
    assert "The unit is gone." in home.run("service", "remove", PATH="/nowhere").stderr
