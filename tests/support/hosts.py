"""Engine hosts as processes of their own, and looking at what they leave behind."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FAKE_ENGINE = Path(__file__).parent / "fake_engine.py"
_HOST = Path(__file__).parent / "engine_host.py"


class HostProcess:
    """One process that hosts an engine in a short-named runtime folder of its own."""

    def __init__(self, runtime: Path | None = None, **options: Any) -> None:
        self.own = runtime is None
        self.runtime = runtime or Path(tempfile.mkdtemp(prefix="lg-"))
        body = {"runtime": str(self.runtime), **options}
        self.process = subprocess.Popen(
            [sys.executable, str(_HOST), json.dumps(body, default=str)], stdout=subprocess.PIPE, text=True
        )
        self._states: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.seen: list[dict[str, Any]] = []

    @property
    def socket(self) -> Path:
        return self.runtime / "engine.sock"

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._states.put(json.loads(line))

    def await_state(self, phase: str, *, detail: str = "", restarts: int = 0, timeout: float = 120) -> dict[str, Any]:
        """The next state of that phase whose detail contains `detail` and that has at least `restarts` restarts."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                state = self._states.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no state {phase} in {timeout} s: {self.seen}\n{self.log()[-4000:]}") from None
            self.seen.append(state)
            if state["phase"] == phase and detail in state["detail"] and state["restarts"] >= restarts:
                return state

    def log(self) -> str:
        path = self.runtime / "engine.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def family(self) -> list[int]:
        """Pids of every live process below the host: guard, engine, and what the engine started."""
        return below(self.process.pid)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        if self.own:
            shutil.rmtree(self.runtime, ignore_errors=True)


def below(root: int) -> list[int]:
    """Live processes below `root`, by /proc."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (found := status(int(folder.name))) is not None:
            parents.setdefault(found, []).append(int(folder.name))
    result, queue_ = [], [root]
    while queue_:
        children = parents.get(queue_.pop(), [])
        result += children
        queue_ += children
    return result


def status(pid: int) -> int | None:
    """The parent of a live process, None if it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[1])


def gone(pids: list[int], timeout: float = 15) -> bool:
    """Whether all of these processes end in time."""
    return eventually(lambda: all(status(pid) is None for pid in pids), timeout)


def eventually(what: Callable[[], object], timeout: float = 15) -> bool:
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if what():
            return True
        time.sleep(0.02)
    return bool(what())


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
