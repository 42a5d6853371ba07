"""The bridge behind `laguna-daemon lsp`: bytes between the editor's pipes and the daemon's socket.

Imports only small modules of the standard library: an editor waits for it. It ends when the editor closes
its pipe or dies, however that happens, and fails when the daemon goes away.
"""

import contextlib
import os
import re
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

CHUNK = 256 * 1024
HIGH_WATER = 4 * 1024 * 1024  # bytes waiting for one side before the other is no longer read
CONNECT_TIMEOUT = 10.0
LAST_WORDS = 2.0  # seconds the daemon gets to answer after the editor has closed its pipe
PARENT_CHECK = 1.0
DYING = 0.3  # seconds: a process that is killed loses its sockets one after the other

_SHUTDOWN = re.compile(rb'"method"\s*:\s*"shutdown"')
_EXIT = re.compile(rb'"method"\s*:\s*"exit"')
_OVERLAP = 64
_LAST = 4096  # bytes in which the daemon's last message is looked for, to say why it has closed the connection

StartDaemon = Callable[[], object]


def run_bridge(path: Path, start: StartDaemon, stdin: int = 0, stdout: int = 1) -> int:
    """Connect the file descriptors `stdin` and `stdout` with the socket at `path`; returns the exit code.

    `start` is called if nobody listens there; what it raises ends the bridge, with the exception's
    `exit_code` where it has one. 0: the editor is done; 1: it said `exit` without `shutdown`, or the
    daemon has gone away; 130: interrupted.
    """
    parent = _Parent()
    try:
        connection = _connect(path, start)
    except Exception as error:  # whatever it is, the editor's log is the place for it
        print(f"laguna-daemon: {error}", file=sys.stderr)
        return int(getattr(error, "exit_code", 1))
    try:
        bridge = _Bridge(connection, parent, stdin, stdout)
        code = bridge.run()
        if code and not bridge.said_exit:
            print(f"laguna-daemon: {_why(path, bridge.last_words())}", file=sys.stderr)
        return code
    except KeyboardInterrupt:
        return 130
    finally:
        connection.close()
        parent.close()


class _Parent:
    """Watches the process that started us: a killed editor does not always close our pipe."""

    def __init__(self) -> None:
        self._pid = os.getppid()
        self.handle: int | None = None
        with contextlib.suppress(OSError, AttributeError):
            self.handle = os.pidfd_open(self._pid)  # readable at its end; the pid is checked as well

    def is_gone(self) -> bool:
        return os.getppid() != self._pid

    def close(self) -> None:
        if self.handle is not None:
            os.close(self.handle)


class _Bridge:
    """One poll loop; neither side is ever waited for while the other has something to say."""

    def __init__(self, connection: socket.socket, parent: _Parent, stdin: int, stdout: int) -> None:
        self._connection = connection
        self._parent = parent
        self._stdin, self._stdout = stdin, stdout
        self._to_daemon = bytearray()
        self._to_editor = bytearray()
        self._editor_open = self._daemon_open = True
        self._half_closed = False
        self._deadline = float("inf")
        self._seen = b""
        self._said_shutdown = self.said_exit = False
        self._latest: deque[bytes] = deque()
        self._kept = 0

    def run(self) -> int:
        self._connection.setblocking(False)
        was_blocking = os.get_blocking(self._stdout)
        os.set_blocking(self._stdout, False)
        try:
            while (code := self._finished()) is None:
                self._turn()
        except BrokenPipeError:
            return 0  # the editor no longer reads
        finally:
            with contextlib.suppress(OSError):
                os.set_blocking(self._stdout, was_blocking)
        return code

    def last_words(self) -> bytes:
        """The end of what the daemon has sent."""
        return b"".join(self._latest)[-_LAST:]

    def _finished(self) -> int | None:
        if self._parent.is_gone():
            return 0
        if not self._daemon_open and not self._to_editor:
            if self.said_exit:
                return 0 if self._said_shutdown else 1
            return 1 if self._editor_open else 0
        if not self._editor_open and time.monotonic() > self._deadline:
            return 0
        return None

    def _turn(self) -> None:
        poll = select.poll()
        wanted: dict[int, int] = {}
        if self._editor_open and len(self._to_daemon) < HIGH_WATER:
            wanted[self._stdin] = select.POLLIN
        if self._daemon_open:
            events = select.POLLIN if len(self._to_editor) < HIGH_WATER else 0
            wanted[self._connection.fileno()] = events | (select.POLLOUT if self._to_daemon else 0)
        # Without POLLOUT a closed reader still reports POLLERR.
        wanted[self._stdout] = wanted.get(self._stdout, 0) | (select.POLLOUT if self._to_editor else 0)
        if self._parent.handle is not None:
            wanted[self._parent.handle] = select.POLLIN
        for handle, events in wanted.items():
            poll.register(handle, events)
        for handle, happened in poll.poll(PARENT_CHECK * 1000):
            self._serve(handle, happened)
        self._close_half()

    def _serve(self, handle: int, happened: int) -> None:
        if handle == self._connection.fileno():
            if happened & select.POLLOUT:
                self._send()
            if happened & (select.POLLIN | select.POLLHUP | select.POLLERR):
                self._receive()
            return
        if handle == self._stdin and happened & (select.POLLIN | select.POLLHUP | select.POLLERR):
            self._read_editor()
        if handle == self._stdout:
            if happened & select.POLLOUT:
                self._write_editor()
            elif happened & (select.POLLERR | select.POLLHUP | select.POLLNVAL):
                raise BrokenPipeError

    def _read_editor(self) -> None:
        try:
            data = os.read(self._stdin, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._editor_open = False
            self._deadline = time.monotonic() + LAST_WORDS
            return
        self._to_daemon += data
        self._send()  # most often there is room: another turn would only cost time
        seen = self._seen[-_OVERLAP:] + data
        self._said_shutdown = self._said_shutdown or _SHUTDOWN.search(seen) is not None
        self.said_exit = self.said_exit or _EXIT.search(seen) is not None
        self._seen = seen[-_OVERLAP:]

    def _write_editor(self) -> None:
        with contextlib.suppress(BlockingIOError):
            written = os.write(self._stdout, memoryview(self._to_editor)[:CHUNK].tobytes())
            del self._to_editor[:written]

    def _send(self) -> None:
        try:
            sent = self._connection.send(memoryview(self._to_daemon)[:CHUNK].tobytes())
        except BlockingIOError:
            return
        except OSError:
            self._to_daemon.clear()  # what the daemon has said already can still be read
            return
        del self._to_daemon[:sent]

    def _receive(self) -> None:
        try:
            data = self._connection.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._to_editor += data
            self._write_editor()
            self._keep(data)
        else:
            self._daemon_open = False

    def _keep(self, data: bytes) -> None:
        self._latest.append(data)
        self._kept += len(data)
        while self._kept - len(self._latest[0]) >= _LAST:
            self._kept -= len(self._latest.popleft())

    def _close_half(self) -> None:
        """After the editor's last byte the daemon learns that there will be no more."""
        if not self._editor_open and not self._to_daemon and not self._half_closed:
            self._half_closed = True
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_WR)


def _connect(path: Path, start: StartDaemon) -> socket.socket:
    try:
        return _dial(path)
    except OSError:
        start()
    deadline = time.monotonic() + CONNECT_TIMEOUT
    while True:
        try:
            return _dial(path)
        except OSError as error:
            if time.monotonic() > deadline:
                raise ConnectionError(f"nobody answers on {path}: {error.strerror}") from error
            time.sleep(0.02)


def _dial(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        raise
    return connection


def _why(path: Path, last: bytes) -> str:
    """Why there is no connection any more, as far as that can be told."""
    import json  # needed at an unhappy end only

    with contextlib.suppress(ValueError, LookupError, TypeError):
        error = json.loads(last.rpartition(b"\r\n\r\n")[2])["error"]
        if error["data"]["closed"]:
            return f"{error['message']} Other editors are served as before."
    time.sleep(DYING)
    try:
        _dial(path).close()
    except OSError:
        return "the daemon has gone away; restart the language server."
    return (
        "the daemon runs, but has closed this connection; its log (laguna-daemon logs) says why. "
        "Restart the language server."
    )
