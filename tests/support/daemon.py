"""A user of one's own for a test: private folders, the real command line, and whatever daemon it starts."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "laguna_daemon.cli"]
FAKE_ENGINE = Path(__file__).parent / "fake_engine.py"


@dataclass
class Home:
    """The folders of one user, and commands run as that user."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    @classmethod
    def create(cls, data: Path | None = None, **extra: str) -> Home:
        """A fresh home; ``data`` lends it the engine and the model of another one."""
        folder = Path(tempfile.mkdtemp(prefix="laguna-"))  # short: socket paths hold 107 bytes
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "LAGUNA_RUNTIME_DIR": str(folder / "run"),
            "LAGUNA_DATA_DIR": str(data or folder / "data"),
            "LAGUNA_CACHE_DIR": str(folder / "cache"),
            "LAGUNA_STATE_DIR": str(folder / "state"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "GIT_CONFIG_NOSYSTEM": "1",
            **{name: value for name, value in os.environ.items() if name.startswith("PIP_")},
            **extra,
        }
        return cls(folder, env)

    @property
    def runtime(self) -> Path:
        return self.folder / "run"

    @property
    def logs(self) -> Path:
        return self.folder / "state" / "logs"

    def run(
        self, *args: str, input: str | bytes = b"", cwd: Path | None = None, timeout: float = 240, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run ``laguna-daemon ARGS`` to its end."""
        raw = input.encode() if isinstance(input, str) else input
        done = subprocess.run(
            [*COMMAND, *args],
            input=raw,
            capture_output=True,
            cwd=cwd or self.folder,
            env={**self.env, **env},
            timeout=timeout,
            check=False,
        )
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    def json(self, *args: str, **more: Any) -> Any:
        """Run a command that must succeed, and read its JSON."""
        done = self.run(*args, **more)
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr, self.daemon_log())
        return json.loads(done.stdout)

    def popen(self, *args: str, cwd: Path | None = None, **more: Any) -> subprocess.Popen[bytes]:
        """Start ``laguna-daemon ARGS``."""
        return subprocess.Popen(
            [*COMMAND, *args],
            cwd=cwd or self.folder,
            env=self.env,
            stdin=more.pop("stdin", subprocess.DEVNULL),
            stdout=more.pop("stdout", subprocess.PIPE),
            stderr=more.pop("stderr", subprocess.PIPE),
            **more,
        )

    def daemon_pid(self) -> int | None:
        """Pid that the running daemon wrote, None if none did."""
        try:
            text = (self.runtime / "daemon.lock").read_text().partition(" ")[0]
        except FileNotFoundError:
            return None
        return int(text) if text.isdigit() and alive(int(text)) else None

    def daemon_log(self) -> str:
        """What daemon and engine have said, for the message of a failed test."""
        texts = [path.read_text(errors="replace")[-4000:] for path in sorted(self.logs.glob("*.log"))]
        return "\n----\n".join(texts)

    def remove(self) -> None:
        """End the daemon and take everything away."""
        self.run("stop")
        pid = self.daemon_pid()
        if pid:
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def until(wanted: Any, timeout: float = 20.0, every: float = 0.05) -> Any:
    """The first true value of ``wanted()``; fails after ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        found = wanted()
        if found:
            return found
        time.sleep(every)
    raise AssertionError(f"not within {timeout} s: {wanted}")


def repository(folder: Path, files: dict[str, str]) -> Path:
    """A git repository of one commit that holds ``files``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "first")
    return folder


def commit(folder: Path, message: str) -> None:
    """Commit everything in the work tree."""
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)


def git(folder: Path, *args: str) -> str:
    """Run git as a test's own user."""
    who = ["-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *args], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout
