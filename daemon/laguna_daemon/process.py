"""The daemon's process: takes the lock, binds the sockets, runs until it is told to end.

Run as ``python -m laguna_daemon.process``; users go through ``laguna-daemon start``.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import uvicorn

from laguna_daemon import __version__
from laguna_daemon.api.app import create_app
from laguna_daemon.config import load_settings
from laguna_daemon.errors import ExitCode, LagunaError
from laguna_daemon.lifecycle import ALREADY_RUNNING, lock_file
from laguna_daemon.lsp.listener import Listener
from laguna_daemon.paths import api_socket, lsp_socket
from laguna_daemon.service.service import Service

_log = logging.getLogger("laguna_daemon")
_GRACE = 2.0  # seconds that running requests get to end by themselves


def main() -> int:
    """Run the daemon; the exit code says whether another one was already there."""
    logging.basicConfig(
        level=os.environ.get("LAGUNA_LOG_LEVEL", "INFO").upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    for noisy in ("httpx", "httpcore", "pygls", "watchfiles", "uvicorn"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    os.umask(0o077)
    try:
        lock = _take_lock()
    except OSError as error:
        _log.error("Cannot write %s: %s. Free space or mend the rights there.", lock_file(), error.strerror)
        return ExitCode.INTERNAL
    if lock is None:
        return ALREADY_RUNNING
    try:
        asyncio.run(_serve())
    except LagunaError as error:
        _log.error("%s", error)
        return int(error.exit_code)
    finally:
        os.close(lock)
    return 0


def _take_lock() -> int | None:
    handle = os.open(lock_file(), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{os.getpid()} {__version__}".encode(), 0)
    return handle


async def _serve() -> None:
    service = Service(load_settings())
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stopping.set)
    api_path = api_socket()
    api = bind_unix(api_path)
    server = _Server(
        uvicorn.Config(
            create_app(service, stopping),
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=int(_GRACE),
        )
    )
    editors = None
    serving = None
    try:
        lsp_socket().unlink(missing_ok=True)
        editors = Listener(service, lsp_socket())
        await editors.start()
        await service.start()
        serving = asyncio.create_task(server.serve(sockets=[api]))
        _log.info("daemon ready, pid %d", os.getpid())
        await stopping.wait()
        _log.info("daemon ending")
    finally:
        if editors is not None:
            await editors.aclose()
        engine_stop = asyncio.create_task(service.stop())
        server.should_exit = True
        if serving is not None:
            with contextlib.suppress(Exception):
                await serving
        await engine_stop
        for path in (api_path, lsp_socket()):
            path.unlink(missing_ok=True)


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: the daemon has its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def bind_unix(path: Path) -> socket.socket:
    """Bind a listening Unix socket of mode 0600; a stale file is removed (the caller holds the lock)."""
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        listening.bind(str(path))
        path.chmod(0o600)
        listening.listen(64)
    except OSError as error:
        listening.close()
        raise LagunaError(
            f"Cannot listen on {path}: {error.strerror}", "Check the runtime folder (docs/settings.md)."
        ) from error
    return listening


if __name__ == "__main__":
    sys.exit(main())
