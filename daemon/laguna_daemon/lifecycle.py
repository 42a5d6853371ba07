"""Finding, starting and stopping the one daemon of a user, seen from its clients.

A daemon holds an exclusive lock on ``daemon.lock`` in the runtime folder for as long as it lives; whoever holds
the lock may remove stale sockets. So a crash needs no cleaning up, and two starts at once give one daemon.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from laguna_daemon import __version__
from laguna_daemon.errors import LagunaError, error_for_code
from laguna_daemon.paths import api_socket, log_dir, runtime_dir
from laguna_daemon.schemas import PROTOCOL, Status

if TYPE_CHECKING:
    import httpx

ALREADY_RUNNING = 75
"""Exit code of a daemon process that found another one holding the lock (EX_TEMPFAIL)."""

START_TIMEOUT = 30.0
STOP_TIMEOUT = 10.0
# What a detached daemon keeps of its starter's environment; everything else would be an accident of who came first.
_KEPT = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER", "SSL_CERT_FILE")
_KEPT_PREFIXES = ("LAGUNA_", "XDG_", "HF_", "CUDA_", "NVIDIA_", "NCCL_", "VLLM_", "LD_LIBRARY_PATH")


def lock_file() -> Path:
    """The file whose lock says that a daemon is alive; it holds the daemon's pid and version."""
    return runtime_dir() / "daemon.lock"


def running_pid() -> int | None:
    """Pid of the live daemon, None if there is none."""
    try:
        handle = os.open(lock_file(), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.read(handle, 64).partition(b" ")[0]
        return int(pid) if pid.isdigit() else None
    finally:
        os.close(handle)
    return None


def http_client(timeout: float | None = 30.0) -> httpx.Client:
    """A client of the daemon's socket."""
    import httpx  # a tenth of a second that `--help` need not pay

    return httpx.Client(
        transport=httpx.HTTPTransport(uds=str(api_socket())),
        base_url="http://daemon",
        timeout=httpx.Timeout(timeout, connect=5.0),
        headers={"X-Laguna-Version": __version__},
    )


def ping() -> dict[str, object] | None:
    """The daemon's status as it sent it, None if nobody answers."""
    import httpx

    try:
        with http_client(5.0) as client:
            answer = client.get("/v1/status")
            answer.raise_for_status()
            found = answer.json()
    except (httpx.HTTPError, OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def status() -> Status | None:
    """The status of a daemon that speaks our protocol; None if none is running."""
    found = ping()
    if found is None:
        return None
    if found.get("protocol") != PROTOCOL:
        raise _foreign(found)
    return Status.model_validate(found)


def ensure_running() -> Status:
    """Return the status of a daemon of our version, starting one, or replacing an idle older one, if needed."""
    found = ping()
    if found is not None and found.get("version") != __version__:
        _retire(found)
        found = None
    if found is None:
        start_process()
        found = ping()
    if found is None or found.get("protocol") != PROTOCOL:
        raise _foreign(found or {})
    return Status.model_validate(found)


def start_process() -> None:
    """Start a detached daemon and wait until it answers; returns at once if one does already."""
    if ping() is not None:
        return
    log = log_dir() / "daemon.log"
    start = log.stat().st_size if log.exists() else 0
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "laguna_daemon.process"],
            stdin=subprocess.DEVNULL,
            stdout=handle,
            stderr=handle,
            cwd="/",
            env=_clean_environment(),
            start_new_session=True,
            close_fds=True,
        )
    except OSError as error:
        raise LagunaError(
            f"The daemon could not be started: {error.strerror}", "Is there memory and disk space left?"
        ) from error
    finally:
        os.close(handle)
    _await_answer(child, log, start)


def stop(timeout: float = STOP_TIMEOUT) -> bool:
    """End the daemon and its engine; True if there was one. Killed if it has not ended after ``timeout`` s."""
    pid = running_pid()
    if pid is None:
        return False
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return False
    except PermissionError as error:
        raise LagunaError(f"The daemon (pid {pid}) belongs to another user.") from error
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        # The lock is free a moment before the process has gone.
        if running_pid() != pid and not _lives(pid):
            return True
        time.sleep(0.05)
    _kill_tree(pid)
    return True


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def _kill_tree(pid: int) -> None:
    import psutil  # only a daemon that hangs needs it

    try:
        parent = psutil.Process(pid)
        family = [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for process in family:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(family, timeout=5)


def _await_answer(child: subprocess.Popen[bytes], log: Path, log_start: int) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    delay = 0.01
    while time.monotonic() < deadline:
        if ping() is not None:
            return
        code = child.poll()
        if code is not None and code != ALREADY_RUNNING:
            raise error_for_code(
                code,
                f"The daemon ended while starting (exit code {code}).\n{_log_tail(log, log_start)}".rstrip(),
                "The whole log: laguna-daemon logs",
            )
        time.sleep(delay)
        delay = min(delay * 1.5, 0.2)
    raise LagunaError(f"The daemon did not answer within {START_TIMEOUT:.0f} s.", "Look at its log: laguna-daemon logs")


def _retire(found: dict[str, object]) -> None:
    """Ask a daemon of another version to end, if nobody is using it."""
    import httpx

    with http_client(STOP_TIMEOUT) as client:
        try:
            answer = client.post("/v1/shutdown", json={"when": "idle"})
            retired = answer.is_success
        except httpx.HTTPError:
            retired = True
    if not retired:
        raise _foreign(found)
    deadline = time.monotonic() + STOP_TIMEOUT
    while running_pid() is not None and time.monotonic() < deadline:
        time.sleep(0.05)


def _foreign(found: dict[str, object]) -> LagunaError:
    return LagunaError(
        f"A daemon of another version is running and in use (it is {found.get('version', 'unknown')}, "
        f"this command is {__version__}).",
        "Finish what is using it, or end it: laguna-daemon stop",
    )


def _clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)}


def _log_tail(log: Path, start: int) -> str:
    with log.open("rb") as file:
        file.seek(start)
        return file.read()[-2000:].decode(errors="replace").strip()
