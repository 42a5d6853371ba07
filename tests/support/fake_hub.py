"""A hub of one repository on the loopback, as far as its client library asks: file list, heads, ranged reads."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

REPOSITORY = "maker/model"
REVISION = "0123456789abcdef0123456789abcdef01234567"
_LARGE = 1000  # bytes from which a file is kept in large-file storage


@dataclass
class Hub:
    """What it holds and what it saw. ``cut`` maps a file to the position at which its transfers break off,
    ``cut_once`` only the first."""

    files: Mapping[str, bytes]
    address: str = ""
    cut: dict[str, int] = field(default_factory=dict)
    cut_once: dict[str, int] = field(default_factory=dict)
    altered: dict[str, bytes] = field(default_factory=dict)
    reads: list[tuple[str, str]] = field(default_factory=list)

    def listed(self) -> list[dict[str, Any]]:
        """The file list as the hub's interface gives it."""
        return [_described(path, data) for path, data in self.files.items()]


@contextmanager
def serve_hub(files: Mapping[str, bytes]) -> Iterator[Hub]:
    """Serve a repository; set HF_ENDPOINT to its address."""
    hub = Hub(files)

    class Handler(_Handler):
        held = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    held: Hub

    def do_GET(self) -> None:
        """Answer a list or the (rest of the) bytes of a file."""
        path = self.path.partition("?")[0]
        if path.startswith(f"/api/models/{REPOSITORY}/tree/{REVISION}"):
            self._json(self.held.listed())
        elif path.startswith(f"/api/models/{REPOSITORY}/revision/{REVISION}"):
            siblings = [{"rfilename": name} for name in self.held.files]
            self._json({"id": REPOSITORY, "sha": REVISION, "siblings": siblings, "private": False, "tags": []})
        elif (name := self._file(path)) is not None:
            self._send(name)
        else:
            self._missing(path)

    def do_HEAD(self) -> None:
        """Say what a file is."""
        name = self._file(self.path.partition("?")[0])
        if name is None:
            self._missing(self.path)
            return
        self.send_response(200)
        self._file_headers(name)
        self.send_header("Content-Length", str(len(self.held.files[name])))
        self.end_headers()

    def _send(self, name: str) -> None:
        data = self.held.altered.get(name, self.held.files[name])
        wanted = self.headers.get("Range", "")
        self.held.reads.append((name, wanted))
        start = int(wanted.removeprefix("bytes=").split("-")[0]) if wanted else 0
        body = data[start:]
        self.send_response(206 if wanted else 200)
        self._file_headers(name)
        self.send_header("Content-Length", str(len(body)))
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        end = self.held.cut.get(name, self.held.cut_once.pop(name, None))
        if end is not None:
            self.wfile.write(body[: max(end - start, 0)])
            self.close_connection = True
            return
        self.wfile.write(body)

    def _file(self, path: str) -> str | None:
        name = path.removeprefix(f"/{REPOSITORY}/resolve/{REVISION}/")
        return name if name in self.held.files else None

    def _file_headers(self, name: str) -> None:
        told = _described(name, self.held.files[name])
        self.send_header("X-Repo-Commit", REVISION)
        self.send_header("ETag", f'"{told["lfs"]["oid"] if "lfs" in told else told["oid"]}"')
        self.send_header("Accept-Ranges", "bytes")

    def _json(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _missing(self, path: str) -> None:
        self.send_response(404)
        self.send_header("X-Error-Code", "RepoNotFound" if REPOSITORY not in path else "RevisionNotFound")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def _described(path: str, data: bytes) -> dict[str, Any]:
    blob = hashlib.sha1(f"blob {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()
    told: dict[str, Any] = {"type": "file", "path": path, "size": len(data), "oid": blob}
    if len(data) >= _LARGE:
        told["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
    return told
