"""The editor's process, as `initialize` names it: a server ends with it, whoever else holds its pipe open.

The bridge watches the process that started it. Where a shell or another wrapper stands between the two, that one lives.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid: ucred of unix(7)
_MOST = 64  # generations


class EditorProcess:
    """Calls back once when the editor's process ends; where that cannot be watched, never."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        self._handle: int | None = None

    def watch(self, claimed: int | None, connection: socket.socket | None) -> None:
        """Watch the process ``claimed``, if the peer at the other end of ``connection`` descends from it.

        An editor in a container of its own names a number that means another process here.
        """
        if claimed is None or connection is None or self._handle is not None:
            return
        if claimed not in ancestors(peer(connection)[0]):
            return
        with contextlib.suppress(OSError, AttributeError):  # it has ended meanwhile, or the kernel is older than 5.3
            self._handle = os.pidfd_open(claimed)
            asyncio.get_running_loop().add_reader(self._handle, self._ended)

    def close(self) -> None:
        """Stop watching."""
        if self._handle is not None:
            asyncio.get_running_loop().remove_reader(self._handle)
            os.close(self._handle)
            self._handle = None

    def _ended(self) -> None:
        self.close()
        self._on_end()


def peer(connection: socket.socket) -> tuple[int, int]:
    """Process and user at the other end of a Unix socket."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(raw)
    return pid, uid


def ancestors(pid: int) -> Iterator[int]:
    """A process, the one that started it, and so on."""
    for _ in range(_MOST):
        if pid <= 1:
            return
        yield pid
        try:
            # The name, in brackets, may hold anything.
            pid = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return
