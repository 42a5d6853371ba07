"""No engine process outlives its host, whoever is killed and when. All of it with real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from laguna_daemon.engine import guard
from laguna_daemon.engine.sweep import COOKIE, proven, sweep, write_record
from support.hosts import HostProcess, below, eventually, gone, kill, status

Hosts = Callable[..., HostProcess]


def ask(host: HostProcess, tokens: int, max_tokens: int) -> None:
    """Put the engine to work, and do not wait for it."""
    body = {"prompt": [300] * tokens, "max_tokens": max_tokens, "ignore_eos": True, "stream": True}

    def run() -> None:
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(host.socket)), timeout=30) as client:
            try:
                client.post("http://e/v1/completions", json=body)
            except httpx.TransportError:
                return

    threading.Thread(target=run, daemon=True).start()


def gauge(host: HostProcess, name: str) -> float:
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(host.socket)), timeout=30) as client:
        page = client.get("http://e/metrics").text
    return next(float(line.split()[-1]) for line in page.splitlines() if line.startswith(f"vllm:{name}"))


def bring_to(host: HostProcess, moment: str) -> list[int]:
    """Wait for the moment; every process of the engine by then."""
    if moment == "start":
        host.await_state("starting", detail="starting")
        assert eventually(lambda: len(host.family()) == 4), host.family()
        return host.family()
    host.await_state("ready")
    ask(host, 2000 if moment == "prefill" else 10, 400)
    counter = "num_requests_running" if moment == "prefill" else "generation_tokens_total"
    assert eventually(lambda: gauge(host, counter) > 0)
    return host.family()


def start_arguments(moment: str) -> list[object]:
    slow = {"start": ["--start-seconds", 30], "prefill": ["--prefill-speed", 100], "decode": ["--decode-speed", 20]}
    return ["--cores", 2, *slow[moment]]


@pytest.mark.parametrize("moment", ["start", "prefill", "decode"])
def test_nothing_is_left_when_the_host_is_killed(host_process: Hosts, moment: str) -> None:
    host = host_process(*start_arguments(moment))
    family = bring_to(host, moment)
    host.kill()
    assert gone(family), [pid for pid in family if status(pid) is not None]
    assert not (host.runtime / "engine.json").exists()


@pytest.mark.parametrize("moment", ["start", "prefill", "decode"])
def test_a_killed_engine_is_cleared_away_and_started_again(host_process: Hosts, moment: str) -> None:
    host = host_process(*start_arguments(moment))
    family = bring_to(host, moment)
    kill(next(pid for pid in family if b"fake_engine" in command(pid) and b"guard.py" not in command(pid)))
    state = host.await_state("backoff")
    assert "killed" in state["error"]
    assert gone(family)
    if moment != "start":
        host.await_state("ready", restarts=1)


@pytest.mark.parametrize("moment", ["start", "decode"])
def test_host_and_guard_killed_together_leave_nothing_after_the_next_start(host_process: Hosts, moment: str) -> None:
    host = host_process(*start_arguments(moment))
    family = bring_to(host, moment)
    assert eventually(lambda: set(family) <= recorded(host))
    kill(host.process.pid)
    kill(next(pid for pid in family if b"guard.py" in command(pid)))
    # The engine itself dies of its parent; its detached processes are what the record is for.
    next_host = host_process(runtime=host.runtime)
    next_host.await_state("ready")
    assert gone(family), [pid for pid in family if status(pid) is not None]


def test_a_killed_guard_takes_everything_with_it(host_process: Hosts) -> None:
    host = host_process("--cores", 2)
    host.await_state("ready")
    family = host.family()
    kill(next(pid for pid in family if b"guard.py" in command(pid)))
    host.await_state("ready", restarts=1)
    assert gone(family)


def test_an_engine_deaf_to_sigterm_is_killed_in_time(host_process: Hosts) -> None:
    host = host_process("--ignore-term", "--cores", 1)
    host.await_state("ready")
    family = host.family()
    host.process.send_signal(signal.SIGTERM)
    host.process.wait(20)
    assert gone(family, 1)


def test_two_hosts_in_one_runtime_folder_are_refused(host_process: Hosts) -> None:
    first = host_process()
    first.await_state("ready")
    family = first.family()
    second = host_process(runtime=first.runtime)
    assert second.process.wait(20) != 0
    assert all(status(pid) is not None for pid in family)
    assert gauge(first, "num_requests_running") == 0


def test_the_sweep_ends_what_the_record_proves_and_nothing_else(runtime: Path) -> None:
    record = runtime / "engine.json"
    write_record(record, "c" * 32, runtime / "engine.sock")
    named = subprocess.Popen(["sleep", "60"])
    marked = subprocess.Popen(["sleep", "60"], env={COOKIE: "c" * 32}, start_new_session=True)
    stranger = subprocess.Popen(["sleep", "60"], env={COOKIE: "d" * 32})
    try:
        body = json.loads(record.read_text())
        # A pid of ours that someone else has by now: same number, another start.
        body["processes"] = [guard.identify(named.pid), [stranger.pid, 1]]
        record.write_text(json.dumps(body))
        assert sweep(record) == sorted([named.pid, marked.pid])
        assert stranger.poll() is None
        assert not record.exists()
    finally:
        for process in (named, marked, stranger):
            process.kill()
            process.wait()


def test_a_record_of_another_boot_proves_nothing(runtime: Path) -> None:
    record = {"boot": "another", "cookie": "x", "processes": [guard.identify(os.getpid())]}
    assert proven(record) == []
    assert proven({**record, "boot": guard.boot_id()}) == [guard.identify(os.getpid())]


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"processes": [[1, 1]]}'])
def test_a_broken_record_ends_nothing(runtime: Path, content: str) -> None:
    record = runtime / "engine.json"
    record.write_text(content)
    assert sweep(record) == []


def test_the_log_is_rotated_and_keeps_three_files(runtime: Path) -> None:
    path = runtime / "engine.log"
    log = guard.Log(path, limit=1000, kept=3)
    for number in range(100):
        log.write(b"line %04d %s" % (number, b"x" * 40))
    files = sorted(file.name for file in runtime.iterdir())
    assert files == ["engine.log", "engine.log.1", "engine.log.2"]
    assert all(file.stat().st_size <= 1000 for file in runtime.iterdir())
    assert path.read_text().splitlines()[-1].startswith("line 0099")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_full_disk_loses_lines_and_says_so(runtime: Path) -> None:
    log = guard.Log(Path("/dev/full"))
    log.write(b"one")
    log.write(b"two")
    assert log.lost == 2
    log._path, log._file = runtime / "engine.log", None
    log.write(b"three")
    assert (runtime / "engine.log").read_text() == "[2 lines were lost: the log could not be written]\nthree\n"


def test_a_full_disk_does_not_stop_the_engine(host_process: Hosts, runtime: Path) -> None:
    (runtime / "engine.log").symlink_to("/dev/full")
    host = host_process("--start-log", __file__, runtime=runtime)
    host.await_state("ready")
    assert gauge(host, "num_requests_running") == 0


def test_long_lines_are_cut_not_kept(runtime: Path) -> None:
    lines = guard.Lines()
    found = list(lines.feed(b"a" * 20_000 + b"\nshort\r\nrest"))
    assert found[-1] == b"short"
    assert list(lines.close()) == [b"rest"]
    endless = guard.Lines()
    pieces = list(endless.feed(b"a" * 20_000))
    assert len(pieces) == 2
    assert all(len(piece) == 8192 for piece in pieces)


def test_descendants_reach_grandchildren_that_detached() -> None:
    script = "import subprocess,time; subprocess.Popen(['sleep','60'], start_new_session=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", script])
    try:
        assert eventually(lambda: len(guard.descendants(child.pid)) == 1)
        assert [pid for pid, _ in guard.descendants(child.pid)] == below(child.pid)
    finally:
        for pid in below(child.pid):
            kill(pid)
        child.kill()
        child.wait()


def recorded(host: HostProcess) -> set[int]:
    return {pid for pid, _ in json.loads((host.runtime / "engine.json").read_text())["processes"]}


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
