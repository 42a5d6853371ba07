"""Installing an engine: real environments and real pip, with a lock file of tiny packages."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from laguna_daemon.engine.install import Step, collect, cost, install, installed, remove, stored
from laguna_daemon.engine.setup.environment import STAMP
from laguna_daemon.engine.setup.lockfile import Lock, parse_lock
from laguna_daemon.engine.setup.storage import InstallFailed, engines_dir
from laguna_daemon.errors import ExitCode
from support.wheels import rebuild_wheel, serve_folder, write_index, write_wheel

INSTALLER = Path(__file__).parents[2] / "support" / "installer.py"
COUNT = 20  # more than one batch of downloads


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place that pip gets packages from, set as a user would; data and state folders are the test's own."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith(("PIP_", "LAGUNA_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("LAGUNA_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("LAGUNA_STATE_DIR", str(tmp_path / "state"))
    return folder


@pytest.fixture
def lock_file(shelf: Path, tmp_path: Path) -> Path:
    """A lock file of tiny packages that are all on the shelf."""
    write_wheel(shelf, "torch", "1.5+cpu")
    for number in range(COUNT):
        write_wheel(shelf, f"part-{number:02}", "1.0")
    path = tmp_path / "tiny.lock"
    path.write_text(
        "# download: 1\n# disk: 30\n"
        + "".join(f"part-{number:02}==1.0\n" for number in range(COUNT))
        + "torch==1.5+cpu\n"
    )
    return path


@pytest.fixture
def lock(lock_file: Path) -> Lock:
    return parse_lock("cpu", lock_file.read_text())


def start(lock_file: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, INSTALLER, lock_file, *arguments], stdout=subprocess.PIPE, text=True, bufsize=1
    )


def read_until(process: subprocess.Popen[str], stage: str) -> list[str]:
    """The stages up to and with the first of this name."""
    assert process.stdout is not None
    seen: list[str] = []
    for line in process.stdout:
        seen.append(line.split("\t")[0])
        if seen[-1] == stage:
            return seen
    raise AssertionError(f"no stage {stage} among {seen}")


def versions(python: Path) -> dict[str, str]:
    code = "import importlib.metadata as m; print(*(f'{d.name}={d.version}' for d in m.distributions()))"
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True)
    return dict(item.split("=") for item in done.stdout.split())


def old_engine(kind: str) -> Path:
    """An engine of an earlier version: another lock file's, and whole."""
    folder = engines_dir() / f"{kind}-0123456789ab"
    folder.mkdir()
    stamp = {"kind": kind, "lock": "0123456789ab", "python": sys.executable, "version": "3.11"}
    (folder / STAMP).write_text(json.dumps(stamp))
    return folder


def test_install_use_lose_and_remove(lock: Lock, shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Where pip installs to is not for the user's settings to say.
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("PIP_USER", "1")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    old = old_engine("cpu")
    before = installed("cpu", lock)
    assert before is not None and before.path == old and not before.current
    steps: list[Step] = []
    result = install("cpu", lock=lock, packaged=None, progress=steps.append)

    assert not result.already and result.model is None and result.home.current
    assert installed("cpu", lock) == result.home
    assert not old.exists() and not (tmp_path / "elsewhere").exists()
    found = versions(result.home.python)
    assert {pin.name: found.get(pin.name) for pin in lock.pins} == {pin.name: pin.version for pin in lock.pins}
    stages = list(dict.fromkeys(step.stage for step in steps))
    assert stages == ["cost", "environment", "download", "install", "verify", "done"]
    assert not any("PyTorch" in step.message for step in steps), "pip's own place has the CPU build"
    assert [item.what for item in stored()] == ["engine"], "downloads are gone once it is complete"

    for wheel in shelf.iterdir():
        wheel.unlink()
    steps.clear()
    again = install("cpu", lock=lock, packaged=None, progress=steps.append)
    assert again.already and again.home == result.home and steps == []
    assert cost("cpu", lock, None).disk == 0

    # The interpreter behind it goes away with an upgrade of the system.
    result.home.python.unlink()
    assert installed("cpu", lock) is None and cost("cpu", lock, None).disk == lock.disk == 30_000_000
    assert remove("cpu") > 1_000_000
    assert stored() == []


@pytest.mark.timeout(900)
def test_killed_at_any_stage_it_continues(shelf: Path, lock_file: Path, lock: Lock) -> None:
    for stage in ("environment", "download", "install", "verify"):
        process = start(lock_file)
        read_until(process, stage)
        process.kill()
        process.wait()
        assert installed("cpu", lock) is None, stage

    # What is downloaded is kept: only a cut-off wheel is needed again.
    (download,) = [item.path for item in stored() if item.what == "download"]
    wheel = next((download / "wheels").glob("part_03-*.whl"))
    wheel.write_bytes(wheel.read_bytes()[:100])
    for path in shelf.iterdir():
        if path.name != wheel.name:
            path.unlink()
    home = install("cpu", lock=lock, packaged=None).home
    assert {pin.name for pin in lock.pins} <= set(versions(home.python))


def test_ctrl_c_leaves_nothing_in_use(lock_file: Path, lock: Lock) -> None:
    process = start(lock_file)
    read_until(process, "download")
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode != 0
    assert installed("cpu", lock) is None
    assert {item.what for item in stored()} == {"unfinished", "download"}
    collect()
    assert stored() == []


def test_two_at_once_make_one_installation(lock_file: Path, lock: Lock) -> None:
    first, second = start(lock_file), start(lock_file)
    outputs = [process.communicate()[0] for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0]
    assert sorted(output.splitlines()[-1] for output in outputs) == ["finished\talready", "finished\tnew"]
    assert sum("wait\t" in output for output in outputs) == 1
    assert installed("cpu", lock) is not None


def test_too_little_space_is_refused_before_anything_is_written(lock: Lock) -> None:
    huge = parse_lock("cpu", "# disk: 900000000\n" + "".join(f"{pin.requirement}\n" for pin in lock.pins))
    with pytest.raises(InstallFailed, match="Not enough disk space") as caught:
        install("cpu", lock=huge, packaged=None)
    assert caught.value.exit_code == ExitCode.ENGINE
    assert [item.what for item in stored()] in ([], ["download"])
    assert installed("cpu", huge) is None


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """A disk that runs full: a small file system where one may be mounted, else a limit on the size of a file."""
    folder.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode == 0:
        try:
            yield
        finally:
            subprocess.run(["umount", "-l", folder], check=True)
        return
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (megabytes * 1_000_000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_runs_full_gives_one_message(shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_wheel(shelf, "large", "1.0", files={"large.bin": bytes(90_000_000)})
    lock = parse_lock("cpu", "large==1.0\n")
    data = tmp_path / "small"
    monkeypatch.setenv("LAGUNA_DATA_DIR", str(data))
    with small_disk(data, 60):
        with pytest.raises(InstallFailed, match="is full") as caught:
            install("cpu", lock=lock, packaged=None)
        assert caught.value.exit_code == ExitCode.ENGINE
        assert installed("cpu", lock) is None


def test_packages_that_do_not_fit_together_are_refused(shelf: Path) -> None:
    packaging = rebuild_wheel(shelf, "packaging").name.split("-")[1]
    write_wheel(shelf, "low", "1.0")
    write_wheel(shelf, "high", "2.0", requires=["low>=1.5", "unneeded"])
    lock = parse_lock("cpu", f"# without: unneeded\nlow==1.0\nhigh==2.0\npackaging=={packaging}\n")
    with pytest.raises(InstallFailed, match=r"high needs low>=1\.5, and the lock file has 1\.0"):
        install("cpu", lock=lock, packaged=None)
    assert installed("cpu", lock) is None


def test_a_package_that_is_nowhere_is_named(shelf: Path) -> None:
    with pytest.raises(InstallFailed, match=r"absent==1\.0") as caught:
        install("cpu", lock=parse_lock("cpu", "absent==1.0\n"), packaged=None)
    assert "run the same command again" in caught.value.advice


def test_the_cpu_build_of_torch_comes_from_its_own_index_where_the_default_has_none(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    write_index(outside / "default", [write_wheel(tmp_path, "torch", "1.5"), write_wheel(tmp_path, "other", "1.0")])
    write_index(outside / "cpu", [write_wheel(tmp_path, "torch", "1.5+cpu")])
    lock = parse_lock("cpu", "torch==1.5+cpu\nother==1.0\n")
    steps: list[Step] = []
    with serve_folder(outside) as address:
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.setenv("PIP_INDEX_URL", f"{address}/default")
        monkeypatch.setenv("LAGUNA_TORCH_INDEX", f"{address}/cpu")
        home = install("cpu", lock=lock, packaged=None, progress=steps.append).home
    assert versions(home.python)["torch"] == "1.5+cpu"
    assert any("trying PyTorch's own" in step.message for step in steps)


def test_an_environment_that_the_user_made_is_used_and_kept(tmp_path: Path, lock: Lock) -> None:
    env = tmp_path / "mine"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", env], check=True)
    with pytest.raises(InstallFailed, match="has no vLLM"):
        install("cpu", lock=lock, packaged=None, engine_python=env / "bin" / "python")
    package = next((env / "lib").glob("python3*/site-packages")) / "vllm"
    package.mkdir()
    (package / "__init__.py").touch()
    home = install("cpu", lock=lock, packaged=None, engine_python=env / "bin" / "python").home
    assert home.python == env / "bin" / "python" and installed("cpu", lock) == home
    remove("cpu")
    assert package.is_dir() and installed("cpu", lock) is None
