"""Looking at an engine from outside: its metrics and, for the fake one, its requests and answers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx


class Probe:
    """Talks to the engine on a Unix socket."""

    def __init__(self, socket: Path) -> None:
        self._http = httpx.Client(transport=httpx.HTTPTransport(uds=str(socket)), base_url="http://engine", timeout=30)

    def running(self) -> int:
        """Requests that the engine is working on or holds waiting."""
        text = self._http.get("/metrics").text
        found = re.findall(r"^vllm:num_requests_(?:running|waiting)\{[^}]*\} (\S+)", text, re.M)
        assert found, text
        return int(sum(float(value) for value in found))

    def requests(self) -> list[dict[str, Any]]:
        """The fake engine's record of all requests."""
        return self._http.get("/control/requests").json()

    def answers(self, *rules: dict[str, Any]) -> None:
        """Give the fake engine its script."""
        self._http.post("/control/answers", json=list(rules)).raise_for_status()

    def complete(self, ids: list[int], output: int = 1) -> None:
        """A request past the daemon."""
        self._http.post("/v1/completions", json={"prompt": ids, "max_tokens": output}).raise_for_status()

    def metric(self, name: str) -> float:
        """One of the engine's counters."""
        found = re.findall(rf"^vllm:{name}\{{[^}}]*\}} (\S+)", self._http.get("/metrics").text, re.M)
        assert found, name
        return sum(float(value) for value in found)

    def tokenize(self, messages: list[dict[str, str]]) -> list[int]:
        """The engine's own ids for a chat."""
        answer = self._http.post("/tokenize", json={"messages": messages, "add_generation_prompt": True})
        answer.raise_for_status()
        return answer.json()["tokens"]
