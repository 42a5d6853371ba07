"""The language server's socket: accepts editors and keeps the register of their sessions."""

import asyncio
import importlib
import logging
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from laguna_context.git import find_root
from laguna_daemon.errors import LagunaError
from laguna_daemon.lsp.editor_process import peer
from laguna_daemon.lsp.ports import ServicePort
from laguna_daemon.lsp.workspaces import FindRoot

if TYPE_CHECKING:
    from laguna_daemon.lsp.server import Session

_log = logging.getLogger(__name__)
BACKLOG = 64


class Listener:
    """Accepts connections on a Unix socket of mode 0600; one session for each."""

    def __init__(self, service: ServicePort, path: Path, find_root: FindRoot = find_root) -> None:
        self._service = service
        self._path = path
        self._find_root = find_root
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.sessions: dict[str, Session] = {}

    async def start(self) -> None:
        """Bind and accept; the caller has removed a stale socket. Raises LagunaError."""
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            os.fchmod(listening.fileno(), 0o600)  # Linux gives the file the mode of the unbound socket
            listening.bind(str(self._path))
            listening.listen(BACKLOG)
        except OSError as error:
            listening.close()
            raise LagunaError(
                f"Cannot listen on {self._path}, so no editor can connect: {error.strerror}",
                "Check the runtime folder's rights and free space.",
            ) from error
        self._server = await asyncio.start_unix_server(self._accept, sock=listening)

    async def aclose(self) -> None:
        """Stop accepting, end every session and remove the socket."""
        if self._server is not None:
            self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._path.unlink(missing_ok=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except asyncio.CancelledError:
            _log.debug("a session was ended with the daemon")
        except Exception:
            _log.exception("a session failed")
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not _is_ours(writer.get_extra_info("socket")):
            _log.warning("a connection of another user was refused")
            return
        # The protocol's types take half a second to import: not at the start of a daemon without editors.
        server = await asyncio.to_thread(importlib.import_module, "laguna_daemon.lsp.server")
        session: Session = server.Session(self._service, reader, writer, self._find_root)
        self.sessions[session.id] = session
        self._service.sessions = len(self.sessions)
        try:
            await session.run()
        finally:
            del self.sessions[session.id]
            self._service.sessions = len(self.sessions)
            _log.info("session %s ended", session.id[:8])


async def listen(service: ServicePort, path: Path) -> Listener:
    """A listener that is accepting on `path`."""
    listener = Listener(service, path)
    await listener.start()
    return listener


def _is_ours(connection: socket.socket) -> bool:
    return peer(connection)[1] in (os.getuid(), 0)
