"""A small process between the daemon and the engine, so that the engine never outlives the daemon.

Run by path with the standard library alone: ``python -I -S guard.py RECORD LOG -- ENGINE COMMAND...``

- Its standard input is a lease: when the daemon closes it, or is killed in any way, the engine is ended.
- It is the engine's parent and a sub-reaper, so every process the engine started, however detached, becomes a
  descendant of the guard and is ended with it. A parent-death signal ends the engine should the guard itself be killed.
- It keeps ``RECORD`` up to date: the processes it can prove are its own, for a sweep after the worst case.
- It writes the engine's output to ``LOG``, with rotation, and reports to the daemon on its standard output,
  one JSON object a line: started, line, exit.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_TERM_GRACE = 6.0  # seconds from SIGTERM to SIGKILL when nobody says how long
_ORPHAN_GRACE = 2.0  # the same when the daemon is gone
_LEFTOVER_GRACE = 0.5  # for what the engine leaves behind when it ends
_LINE_LIMIT = 8192
_REPORT_LIMIT = 600  # characters; a report must fit PIPE_BUF (4096 bytes) to be written whole or not at all
_LOG_LIMIT = 10 * 1024 * 1024
_LOGS_KEPT = 3
_TICK = 0.2
_YOUNG = 120.0  # seconds in which an engine starts its processes; after that looking for new ones can wait
_SELDOM = 2.0

_LIBC = ctypes.CDLL(None, use_errno=True)

ProcessId = tuple[int, int]
"""A pid and its start time in clock ticks since boot; together they name one process for good."""


def identify(pid: int) -> ProcessId | None:
    """The identity of a live process, None if there is none (or it is a zombie)."""
    found = _stat(pid)
    return None if found is None or found[0] in "ZX" else (pid, found[2])


def boot_id() -> str:
    """The kernel's id of this boot: pids and start times mean nothing beyond it."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def descendants(root: int) -> list[ProcessId]:
    """All live processes below ``root``, children before grandchildren."""
    table: dict[int, list[ProcessId]] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        found = _stat(int(folder.name))
        if found is not None and found[0] not in "ZX":
            table.setdefault(found[1], []).append((int(folder.name), found[2]))
    result: list[ProcessId] = []
    queue = [root]
    while queue:
        children = table.pop(queue.pop(), [])
        result += children
        queue += [pid for pid, _ in children]
    return result


def _stat(pid: int) -> tuple[str, int, int] | None:
    """State, parent and start time of a process; the command's name before them can hold anything."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return fields[0].decode(), int(fields[1]), int(fields[19])
    except (OSError, IndexError, ValueError):
        return None


class Log:
    """A log file that is rotated at a size; a full disk loses lines, counts them, and never stops the engine."""

    def __init__(self, path: Path, limit: int = _LOG_LIMIT, kept: int = _LOGS_KEPT) -> None:
        self._path, self._limit, self._kept = path, limit, kept
        self._file: BinaryIO | None = None
        self._size = 0
        self.lost = 0

    def write(self, line: bytes) -> None:
        """Append one line; failures are counted in ``lost`` and reported with the next line that fits."""
        try:
            self._open_for(len(line) + 1)
            assert self._file is not None
            if self.lost:
                note = b"[%d lines were lost: the log could not be written]\n" % self.lost
                self._size += self._file.write(note)
                self.lost = 0
            self._size += self._file.write(line + b"\n")
        except OSError:
            self.lost += 1

    def _open_for(self, size: int) -> None:
        if self._file is not None and self._size + size > self._limit:
            self._file.close()
            self._file = None
            for number in range(self._kept - 1, 0, -1):
                with contextlib.suppress(FileNotFoundError):
                    self._numbered(number - 1).replace(self._numbered(number))
        if self._file is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.fdopen(os.open(self._path, flags, 0o600), "ab", buffering=0)
            self._size = os.fstat(self._file.fileno()).st_size

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path


class Lines:
    """Cuts a byte stream into lines, over-long ones into pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            yield line.rstrip(b"\r")
        while len(self._rest) > _LINE_LIMIT:
            yield self._rest[:_LINE_LIMIT]
            self._rest = self._rest[_LINE_LIMIT:]

    def close(self) -> Iterator[bytes]:
        if self._rest:
            yield self._rest
            self._rest = b""


class Guard:
    """The state of one guarded engine."""

    def __init__(self, record: Path, log: Log, argv: Sequence[str]) -> None:
        self._record, self._log, self._argv = record, log, argv
        self._parent = os.getppid()
        self._known: set[ProcessId] = set()
        self._deadline: float | None = None
        self._lines = Lines()
        self._lease_text = b""
        self._report_open = True

    def run(self) -> int:
        """Start the engine, watch it to its end, leave nothing behind; the engine's exit code."""
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._child = self._start()
        signal.signal(signal.SIGTERM, lambda *_: self._end_within(_TERM_GRACE))
        self._note(descendants(os.getpid()))
        self._report({"event": "started", "pid": self._child.pid})
        os.set_blocking(0, False)
        output = self._child.stdout
        assert output is not None
        os.set_blocking(output.fileno(), False)
        with selectors.DefaultSelector() as selector:
            selector.register(0, selectors.EVENT_READ, self._read_lease)
            selector.register(output.fileno(), selectors.EVENT_READ, self._read_output)
            self._watch(selector)
        self._end_leftovers()
        self._read_output(output.fileno())
        for line in self._lines.close():
            self._take_line(line)
        self._report({"event": "exit", "code": self._child.returncode})
        with contextlib.suppress(OSError):
            self._record.unlink()
        code = self._child.returncode
        return code if code >= 0 else 128 - code

    def failed(self, why: str) -> None:
        """Report an engine that could not be started at all."""
        self._take_line(why.encode())
        self._report({"event": "exit", "code": 127})
        with contextlib.suppress(OSError):
            self._record.unlink()

    def _start(self) -> subprocess.Popen[bytes]:
        guard = os.getpid()

        def prepare() -> None:
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != guard:  # the guard died before the line above took effect
                os._exit(1)

        return subprocess.Popen(
            self._argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=prepare,  # noqa: PLW1509 - there is one thread
        )

    def _watch(self, selector: selectors.BaseSelector) -> None:
        born = time.monotonic()
        next_look = 0.0
        while self._child.poll() is None:
            for key, _ in selector.select(_TICK):
                if not key.data(key.fd):
                    selector.unregister(key.fd)
            now = time.monotonic()
            if os.getppid() != self._parent:
                self._end_within(_ORPHAN_GRACE)
            if self._deadline is not None and now >= self._deadline:
                self._kill()
            if now >= next_look:
                self._note(descendants(os.getpid()))
                next_look = now + (_TICK if now - born < _YOUNG else _SELDOM)
            self._reap()

    def _read_lease(self, fd: int) -> bool:
        """Read the daemon's word: ``stop SECONDS``, or the end of the lease. False when there is no more to read."""
        try:
            data = os.read(fd, 4096)
        except BlockingIOError:
            return True
        if not data:
            self._end_within(_ORPHAN_GRACE)
            return False
        *words, self._lease_text = (self._lease_text + data).split(b"\n")
        for word in words:
            if word.startswith(b"stop"):
                self._end_within(float(word[4:] or _TERM_GRACE))
        return True

    def _read_output(self, fd: int) -> bool:
        try:
            while data := os.read(fd, 65536):
                for line in self._lines.feed(data):
                    self._take_line(line)
        except BlockingIOError:
            return True
        return False

    def _take_line(self, line: bytes) -> None:
        self._log.write(line)
        self._report({"event": "line", "text": line.decode("utf-8", "replace")[:_REPORT_LIMIT]})

    def _end_within(self, seconds: float) -> None:
        """SIGTERM the engine now (once), SIGKILL everything in ``seconds``, unless that is due sooner already."""
        deadline = time.monotonic() + seconds
        if self._deadline is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child.pid, signal.SIGTERM)
                os.kill(self._child.pid, signal.SIGCONT)
        self._deadline = min(deadline, self._deadline or deadline)

    def _kill(self) -> None:
        if self._child.returncode is None:  # once it is reaped its number can be anyone's
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child.pid, signal.SIGKILL)
        for pid, _ in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def _end_leftovers(self) -> None:
        """The engine has ended: what it left behind gets a moment to follow it, then SIGKILL."""
        patience = time.monotonic() + _LEFTOVER_GRACE
        last = patience + 5.0
        while left := descendants(os.getpid()):
            self._note(left)
            now = time.monotonic()
            if now >= patience:
                self._kill()
            if now >= last:  # only a process stuck in the kernel survives SIGKILL
                names = ", ".join(str(pid) for pid, _ in left)
                self._take_line(f"guard: processes {names} did not end after SIGKILL".encode())
                return
            time.sleep(0.02)
            self._reap()

    def _reap(self) -> None:
        """Collect orphans that became our children; the engine itself is left to Popen."""
        with contextlib.suppress(ChildProcessError):
            while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if found.si_pid == self._child.pid and self._child.returncode is None:
                    return
                os.waitpid(found.si_pid, os.WNOHANG)

    def _note(self, found: Sequence[ProcessId]) -> None:
        if not set(found) - self._known and self._known:
            return
        self._known = {entry for entry in self._known if identify(entry[0]) == entry} | set(found)
        with contextlib.suppress(OSError, ValueError):
            record = json.loads(self._record.read_text(encoding="utf-8"))
            record["processes"] = sorted(self._known | {identify(os.getpid()) or (0, 0)})
            temporary = self._record.with_suffix(".new")
            temporary.write_text(json.dumps(record), encoding="utf-8")
            temporary.replace(self._record)

    def _report(self, event: dict[str, Any]) -> None:
        """Tell the daemon; what it does not read in time is dropped, since the engine must not wait for it."""
        if not self._report_open:
            return
        try:
            os.write(1, json.dumps(event, ensure_ascii=False).encode() + b"\n")
        except BlockingIOError:
            return
        except OSError:
            self._report_open = False


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def main(arguments: Sequence[str]) -> int:
    """Guard the command after ``--``; 127 if it cannot be started."""
    record, log, _, *argv = arguments
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    os.set_blocking(1, False)
    guard = Guard(Path(record), Log(Path(log)), argv)
    try:
        return guard.run()
    except OSError as error:
        guard.failed(f"guard: cannot start {argv[0]}: {error.strerror}")
        return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
