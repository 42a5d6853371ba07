"""The daemon's HTTP interface without a command line between, for tests with many requests or several at once."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from support.daemon import Home

WORDS = [f"word{number}" for number in range(2000)]


class Daemon:
    """Requests to a running daemon."""

    def __init__(self, home: Home) -> None:
        home.json("start", "--wait", "--json", timeout=900)
        self._http = httpx.Client(
            transport=httpx.HTTPTransport(uds=str(home.runtime / "api.sock")), base_url="http://daemon", timeout=240
        )
        self._chance = random.Random(5)

    def events(self, path: str, **body: Any) -> Iterator[dict[str, Any]]:
        """The events of a streamed answer; closing the iterator aborts it."""
        with self._http.stream("POST", path, json=body) as answer:
            for line in answer.iter_lines():
                yield json.loads(line)

    def ask(self, root: Path | None, question: str, output: int = 4, **more: Any) -> dict[str, Any]:
        """The usage of an answer, or its error."""
        where = {"root": str(root)} if root else {"no_context": True}
        events = list(self.events("/v1/ask", question=question, max_tokens=output, **where, **more))
        last = events[-1]
        return last["usage"] if last["kind"] == "usage" else last

    def warm(self, root: Path, action: str = "warm") -> list[dict[str, Any]]:
        """The events of a warm-up, waited for."""
        return list(self.events("/v1/warm", root=str(root), action=action))

    def complete(self, words: int, output: int = 4) -> dict[str, Any]:
        """A completion whose prompt was never seen before."""
        body = {"path": "a.py", "prefix": self.text(words), "suffix": "", "max_tokens": output}
        return self._http.post("/v1/complete", json=body).json()

    def status(self) -> dict[str, Any]:
        return self._http.get("/v1/status").json()

    def root(self, root: Path) -> dict[str, Any]:
        """What the status says of a root; empty if it is not open."""
        return next((item for item in self.status()["workspaces"] if item["root"] == str(root)), {})

    def text(self, words: int) -> str:
        return " ".join(self._chance.choices(WORDS, k=words))
