"""A raw language client: full control over what is written, and every message that comes back is kept."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from pathlib import Path
from typing import Any

PATIENCE = 60.0
"""Seconds after which an expected message is not going to come any more."""


def encode(*messages: dict[str, Any]) -> bytes:
    """The messages as they go over the wire, one behind the other."""
    parts = []
    for message in messages:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        parts.append(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    return b"".join(parts)


class LspClient:
    """One connection to the language server, over a socket or a bridge's pipes."""

    def __init__(self, reader: asyncio.StreamReader, writer: Any, process: Any = None) -> None:
        self._reader = reader
        self.writer = writer
        self.process = process
        self.received: list[dict[str, Any]] = []
        self.answer_requests = True
        self.capabilities: dict[str, Any] = {}
        self._ids = itertools.count(1)
        self._news = asyncio.Condition()
        self.closed = False
        self._task = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, path: Path) -> LspClient:
        """A client of the socket at `path`."""
        return cls(*await asyncio.open_unix_connection(str(path)))

    @classmethod
    async def spawn(cls, *argv: str, env: dict[str, str] | None = None) -> LspClient:
        """A client of a process that speaks on its pipes."""
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=env,
        )
        assert process.stdout is not None
        return cls(process.stdout, process.stdin, process)

    async def _read(self) -> None:
        try:
            while header := await self._reader.readuntil(b"\r\n\r\n"):
                length = int(header.split(b"Content-Length: ")[1].split(b"\r\n")[0])
                message = json.loads(await self._reader.readexactly(length))
                if "id" in message and "method" in message and self.answer_requests:
                    self.write(encode({"id": message["id"], "result": None}))
                async with self._news:
                    self.received.append(message)
                    self._news.notify_all()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.closed = True
            async with self._news:
                self._news.notify_all()

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    async def until(self, wanted: Any) -> dict[str, Any]:
        """The first received message for which `wanted(message)` is true; waits for it."""
        async with asyncio.timeout(PATIENCE), self._news:
            while True:
                for message in self.received:
                    if wanted(message):
                        return message
                assert not self.closed, "the connection has ended"
                await self._news.wait()

    async def gone(self) -> None:
        """Wait until the other side has closed."""
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait({self._task})

    def start(self, method: str, params: Any = None) -> int:
        """Send a request; returns its id."""
        msg_id = next(self._ids)
        self.write(encode({"id": msg_id, "method": method, "params": params}))
        return msg_id

    async def answer(self, msg_id: Any) -> dict[str, Any]:
        """The response to a request."""
        return await self.until(lambda m: m.get("id") == msg_id and "method" not in m)

    async def request(self, method: str, params: Any = None) -> Any:
        """Send a request and return its result; an error response fails the test."""
        answer = await self.answer(self.start(method, params))
        assert "error" not in answer, answer
        return answer["result"]

    async def refused(self, method: str, params: Any = None) -> int:
        """Send a request that must fail; returns the error's code."""
        answer = await self.answer(self.start(method, params))
        assert "result" not in answer, answer
        return int(answer["error"]["code"])

    def notify(self, method: str, params: Any = None) -> None:
        self.write(encode({"method": method, "params": params}))

    def answers(self, msg_id: Any) -> list[dict[str, Any]]:
        """Every response to `msg_id` so far."""
        return [m for m in self.received if m.get("id") == msg_id and "method" not in m]

    def progress(self, token: Any) -> list[Any]:
        """The values of `$/progress` for a token so far."""
        return [
            m["params"]["value"]
            for m in self.received
            if m.get("method") == "$/progress" and m["params"]["token"] == token
        ]

    async def initialize(self, *folders: Path, **capabilities: Any) -> dict[str, Any]:
        """Go through the start of the life cycle; returns the server's capabilities."""
        params = {
            "processId": None,
            "rootUri": None,
            "capabilities": capabilities,
            "workspaceFolders": [{"uri": f.as_uri(), "name": f.name} for f in folders] or None,
        }
        result = await self.request("initialize", params)
        self.notify("initialized", {})
        self.capabilities = result["capabilities"]
        return self.capabilities

    def open(self, uri: str, text: str, version: int = 1, language: str = "python") -> None:
        document = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def change(self, uri: str, version: int, *changes: dict[str, Any]) -> None:
        self.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": uri, "version": version}, "contentChanges": list(changes)},
        )

    async def settle(self) -> None:
        """Come back when the server has handled all that was sent before."""
        await self.request("laguna/status")

    async def close(self) -> None:
        self.writer.close()
        if self.process is not None:
            async with asyncio.timeout(PATIENCE):
                await self.process.wait()
        await self.gone()


def inline(uri: str, line: int, character: int) -> dict[str, Any]:
    """Params of an automatic inline completion."""
    return {
        "textDocument": {"uri": uri},
        "position": {"line": line, "character": character},
        "context": {"triggerKind": 2},
    }


def edit(start: tuple[int, int], end: tuple[int, int], text: str) -> dict[str, Any]:
    """A ranged change event."""
    return {
        "range": {
            "start": {"line": start[0], "character": start[1]},
            "end": {"line": end[0], "character": end[1]},
        },
        "text": text,
    }


_BRIDGE = """
import sys
from pathlib import Path
from laguna_daemon.lsp.bridge import run_bridge
sys.exit(run_bridge(Path(sys.argv[1]), lambda: {start}))
"""


def bridge_command(path: Path, start: str = "sys.exit(99)") -> list[str]:
    """The bridge to the socket at `path`, as the command line runs it; `start` is what starts a daemon."""
    return [sys.executable, "-c", _BRIDGE.format(start=start), str(path)]
