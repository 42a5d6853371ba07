"""One engine process behind its guard, seen from the daemon."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import sys
from collections.abc import Callable
from pathlib import Path

from laguna_daemon.engine import guard
from laguna_daemon.engine.launch import Launch
from laguna_daemon.engine.sweep import COOKIE, sweep, write_record
from laguna_daemon.errors import EngineUnavailable

_REPORT_BYTES = 64 * 1024
_GUARD_GRACE = 1.0  # what a guard needs beyond the engine's own time


class Child:
    """A running engine. ``ended`` is set once it and everything it started are gone; then ``code`` is its exit code
    (negative: the signal that ended it), None if even the guard could not tell.
    """

    def __init__(self, process: asyncio.subprocess.Process, record: Path) -> None:
        self.pid: int | None = None
        self.code: int | None = None
        self.ended = asyncio.Event()
        self._process = process
        self._record = record
        self._started = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None

    @classmethod
    async def spawn(cls, launch: Launch, record: Path, log: Path, on_line: Callable[[str], None]) -> Child:
        """Start the launch behind a guard. Raises EngineUnavailable if not even the guard can be started."""
        cookie = secrets.token_hex(16)
        try:
            write_record(record, cookie, launch.socket)
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", guard.__file__, str(record), str(log), "--"),
                *launch.argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={**launch.env, COOKIE: cookie},
                cwd="/",
                start_new_session=True,
                limit=_REPORT_BYTES,
            )
        except OSError as error:
            raise EngineUnavailable(
                f"The engine's guard process cannot be started: {error.strerror}.",
                "Is there memory, and disk space in the runtime folder, left?",
            ) from error
        child = cls(process, record)
        child._reader = asyncio.create_task(child._read(on_line), name="engine reports")
        try:
            await child._started.wait()
        except asyncio.CancelledError:
            await child.stop(_GUARD_GRACE)
            raise
        return child

    async def stop(self, within: float) -> None:
        """End it within about ``within`` seconds: SIGTERM, and SIGKILL for whatever is left at the end of that."""
        if self.ended.is_set():
            return
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(OSError):
            stdin.write(b"stop %.2f\n" % max(0.0, within - _GUARD_GRACE))
            await stdin.drain()
        if not await self.wait(within):
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self.ended.wait()

    async def wait(self, seconds: float) -> bool:
        """Wait for its end, but no longer than ``seconds``; whether it has ended."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ended.wait()
        return self.ended.is_set()

    async def _read(self, on_line: Callable[[str], None]) -> None:
        """Follow the guard's reports to their end, which is the guard's end."""
        stdout = self._process.stdout
        assert stdout is not None
        exited = False
        try:
            while raw := await stdout.readline():
                event = json.loads(raw)
                if event["event"] == "started":
                    self.pid = event["pid"]
                    self._started.set()
                elif event["event"] == "line":
                    on_line(event["text"])
                elif event["event"] == "exit":
                    self.code, exited = event["code"], True
            code = await self._process.wait()
            if not exited:
                # The guard was killed, or its last report did not get through; nothing it guarded may stay.
                self.code = 128 - code if 128 < code < 160 else None
                await asyncio.to_thread(sweep, self._record)
        finally:
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._started.set()
            self.ended.set()
