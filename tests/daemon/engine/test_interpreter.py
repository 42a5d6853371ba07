"""Which Python makes an environment, and what is said of one that cannot."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from laguna_daemon.engine.setup.interpreter import check_machine, choose, inspect
from laguna_daemon.engine.setup.lockfile import parse_lock
from laguna_daemon.engine.setup.storage import InstallFailed

HERE = ".".join(map(str, sys.version_info[:2]))
LOCK = parse_lock("cpu", f"# python: {HERE}\nalpha==1.0\n")


def stand_in(path: Path, told: str) -> Path:
    """Something that answers as another Python would."""
    path.write_text(f"#!/bin/sh\necho '{told}'\n")
    path.chmod(0o755)
    return path


def test_the_one_that_runs_this_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAGUNA_PYTHON", raising=False)
    found = choose(None, LOCK)
    assert found.path == Path(sys.executable) and found.venv and found.version == HERE


def test_the_flag_beats_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAGUNA_PYTHON", str(tmp_path / "nowhere"))
    assert choose(Path(sys.executable), LOCK).path == Path(sys.executable)
    with pytest.raises(InstallFailed, match="no Python at"):
        choose(None, LOCK)


def test_a_symlink_is_kept(tmp_path: Path) -> None:
    link = tmp_path / "python"
    link.symlink_to(sys.executable)
    assert choose(link, LOCK).path == link


def test_something_that_is_no_python_is_refused(tmp_path: Path) -> None:
    for told in ("", "[]", "hello"):
        with pytest.raises(InstallFailed, match="not a Python that runs"):
            inspect(stand_in(tmp_path / "python", told))


def test_without_venv_the_package_to_install_is_named(tmp_path: Path) -> None:
    python = stand_in(tmp_path / "python", f'{{"version": "{HERE}", "venv": false, "vllm": false}}')
    with pytest.raises(InstallFailed, match="cannot make virtual environments") as caught:
        choose(python, LOCK)
    assert "apt install python3-venv" in caught.value.advice


def test_another_version_than_the_lock_files_is_refused(tmp_path: Path) -> None:
    python = stand_in(tmp_path / "python", '{"version": "3.9", "venv": true, "vllm": false}')
    with pytest.raises(InstallFailed, match=rf"Python 3\.9; the cpu engine is locked for {HERE}"):
        choose(python, LOCK)


def test_a_machine_that_the_packages_do_not_run_on_is_refused() -> None:
    with pytest.raises(InstallFailed, match="is made for vax"):
        check_machine(parse_lock("cpu", "# machine: vax\nalpha==1.0\n"))
    with pytest.raises(InstallFailed, match="no NOSUCHFLAG"):
        check_machine(parse_lock("cpu", "# cpu-flags: nosuchflag\nalpha==1.0\n"))
    check_machine(LOCK)
