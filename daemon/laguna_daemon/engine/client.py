"""The daemon's client of one engine, over its Unix socket or a URL.

Prompts go in as token ids through ``/v1/completions``, which applies neither chat template nor parsers; every
sampling field is explicit. Closing a generation closes its connection, which aborts it in the engine.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import orjson
from numpy.typing import NDArray

from laguna_daemon.engine.connections import CONNECT_S, KEPT, REST_S, Connections
from laguna_daemon.engine.faults import from_body, from_response, from_transport
from laguna_daemon.engine.metrics import Metrics, parse_metrics
from laguna_daemon.engine.sampling import Sampling, Traits, check
from laguna_daemon.engine.sse import events
from laguna_daemon.errors import EngineUnavailable

__all__ = ["NOTHING_NEW", "EngineClient", "Finish", "Metrics", "Piece", "Sampling", "finish_of"]

_PROBE = 5.0
_REQUEST = 60.0
LONG_PROMPT = 16_384
"""From so many tokens on the answer's ids come with the log probabilities: vLLM's other way to return them returns the
prompt's too, 30 ms at 190,000."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some generated tokens and the text they add. The id that ended the answer is not among them.

    The text can lag behind the ids while a character is incomplete. A server that is not vLLM sends no ids.
    """

    token_ids: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of a generation. ``reason`` is ``stop``, ``length`` or ``abort``; counts are the engine's own.

    ``output_tokens`` includes the id that ended the answer; ``stopped_by`` is that id or the stop text, if known.
    """

    reason: str
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    stopped_by: int | str | None = None


NOTHING_NEW = Sampling(max_tokens=1, token_ids=False)
"""For requests that are about their prompt alone: one token, which nobody reads."""


async def finish_of(pieces: AsyncGenerator[Piece | Finish, None]) -> Finish:
    """Let a generation run to its end, and pass over its answer."""
    async with contextlib.aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, Finish):
                return piece
    raise AssertionError("a generation ends with its Finish")


class EngineClient:
    """One engine. Methods raise EngineUnavailable when it does not answer, and other LagunaErrors when it refuses."""

    def __init__(
        self,
        *,
        socket: Path | None = None,
        url: str | None = None,
        api_key: str | None = None,
        model: str | None = None,
        traits: Traits | None = None,
        priorities: bool = False,
        dialect: str = "vllm",
    ) -> None:
        if (socket is None) == (url is None):
            raise ValueError("name either a socket or a URL")
        headers = {"Content-Type": "application/json"}
        if api_key:
            headers["Authorization"] = f"Bearer {api_key}"
        self.traits = traits or Traits()
        self.model = model
        self._vllm = dialect == "vllm"
        self._priorities = priorities
        self._http = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(
                uds=str(socket) if socket else None,
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=KEPT),
            ),
            base_url=_root(url) if url else "http://engine",
            headers=headers,
            timeout=httpx.Timeout(_REQUEST, connect=CONNECT_S),
        )
        self._local = Connections(socket, headers) if socket else None

    async def generate(
        self, prompt: NDArray[np.uint32] | Sequence[int], sampling: Sampling, *, priority: int = 0
    ) -> AsyncGenerator[Piece | Finish, None]:
        """Stream the answer to a prompt of token ids, shape (n,); the last item is the Finish.

        Lower ``priority`` goes first. Closing the generator, or cancelling its task, aborts in the engine.
        """
        check(sampling, self.traits, len(prompt))
        body = orjson.dumps(self._request(prompt, sampling, priority), option=orjson.OPT_SERIALIZE_NUMPY)
        tally = _Tally(len(prompt), sampling)
        post = self._local.post if self._local else self._post
        try:
            async with post("/v1/completions", body) as answer:
                if not 200 <= answer.status < 300:
                    raise from_response(answer.status, await answer.read())
                async with contextlib.aclosing(events(answer.chunks())) as stream:
                    async for event in stream:
                        piece = tally.add(event)
                        if piece is not None:
                            yield piece
                await answer.done()
        except httpx.TransportError as error:
            raise from_transport(error) from error
        yield tally.finish()

    async def tokenize(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> list[int]:
        """Ids that the engine's own template and tokenizer make of chat messages, generation prompt included.

        ``options`` go into the request, e.g. ``chat_template_kwargs``.
        """
        answer = await self._call("POST", "/tokenize", {"messages": list(messages), **options}, _REQUEST)
        return [int(number) for number in answer["tokens"]]

    async def tokenize_text(self, text: str) -> list[int]:
        """Ids of a text, special tokens in it recognised, none added."""
        body = {"prompt": text, "add_special_tokens": False}
        return [int(number) for number in (await self._call("POST", "/tokenize", body, _REQUEST))["tokens"]]

    async def health(self, within: float = _PROBE) -> bool:
        """Whether the engine says that it can serve; False also when nobody answers ``within`` seconds."""
        path = "/health" if self._vllm else "/v1/models"
        try:
            return (await self._http.get(path, timeout=within)).is_success
        except httpx.HTTPError:
            return False

    async def version(self) -> str:
        """vLLM's version; empty if the server does not tell."""
        try:
            return str((await self._call("GET", "/version")).get("version", ""))
        except EngineUnavailable:
            return ""

    async def models(self) -> list[dict[str, Any]]:
        """What ``/v1/models`` lists; vLLM adds ``max_model_len``."""
        return list((await self._call("GET", "/v1/models")).get("data", []))

    async def metrics(self) -> Metrics:
        """A reading of the engine's counters."""
        try:
            answer = await self._http.get("/metrics", timeout=_PROBE)
        except httpx.TransportError as error:
            raise from_transport(error) from error
        if not answer.is_success:
            raise from_response(answer.status_code, answer.content)
        return parse_metrics(answer.text)

    async def reset_prefix_cache(self) -> bool:
        """Empty the prefix cache; needs an engine started with VLLM_SERVER_DEV_MODE=1. False if blocks are in use."""
        return bool((await self._call("POST", "/reset_prefix_cache")).get("success", True))

    async def aclose(self) -> None:
        """Close all connections; generations still running are aborted."""
        if self._local is not None:
            await self._local.aclose()
        await self._http.aclose()

    @contextlib.asynccontextmanager
    async def _post(self, path: str, body: bytes) -> AsyncIterator[_RemoteAnswer]:
        timeout = httpx.Timeout(None, connect=CONNECT_S)
        async with self._http.stream("POST", path, content=body, timeout=timeout) as answer:
            yield _RemoteAnswer(answer)

    def _request(self, prompt: NDArray[np.uint32] | Sequence[int], sampling: Sampling, priority: int) -> dict[str, Any]:
        body: dict[str, Any] = {
            "prompt": prompt if isinstance(prompt, np.ndarray) else list(prompt),
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "presence_penalty": sampling.presence_penalty,
            "frequency_penalty": sampling.frequency_penalty,
            "seed": sampling.seed,
            "stop": list(sampling.stop),
            "logit_bias": {str(token): bias for token, bias in sampling.logit_bias.items()} or None,
            "n": 1,
            "echo": False,
        }
        if self.model:
            body["model"] = self.model
        return {**body, **self._extensions(len(prompt), sampling, priority)} if self._vllm else body

    def _extensions(self, tokens: int, sampling: Sampling, priority: int) -> dict[str, Any]:
        """The fields that vLLM adds to OpenAI's."""
        named = sampling.token_ids and tokens >= LONG_PROMPT
        return {
            "return_token_ids": sampling.token_ids and not named,
            **({"logprobs": 0, "return_tokens_as_token_ids": True} if named else {}),
            "add_special_tokens": False,
            "top_k": sampling.top_k,
            "min_p": sampling.min_p,
            "repetition_penalty": sampling.repetition_penalty,
            "stop_token_ids": list(sampling.stop_token_ids),
            "ignore_eos": sampling.ignore_eos,
            "min_tokens": sampling.min_tokens,
            "skip_special_tokens": True,
            "spaces_between_special_tokens": False,
            "include_stop_str_in_output": False,
            "priority": priority if self._priorities else 0,
            **({"structured_outputs": dict(sampling.structured)} if sampling.structured else {}),
            **({"cache_salt": sampling.cache_salt} if sampling.cache_salt else {}),
        }

    async def _call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, within: float = _PROBE
    ) -> dict[str, Any]:
        try:
            content = orjson.dumps(body) if body is not None else None
            answer = await self._http.request(method, path, content=content, timeout=within)
        except httpx.TransportError as error:
            raise from_transport(error) from error
        if not answer.is_success:
            raise from_response(answer.status_code, answer.content)
        found = orjson.loads(answer.content or b"{}")
        return found if isinstance(found, dict) else {}


class _RemoteAnswer:
    """An answer of an engine behind a URL; see Answer."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._bytes = response.aiter_raw()
        self.status = response.status_code

    def chunks(self) -> AsyncIterator[bytes]:
        return self._bytes

    async def read(self) -> bytes:
        return await self._response.aread()

    async def done(self) -> None:
        """A connection that was read to its end can be used again."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(REST_S):
                async for _ in self._bytes:
                    pass


class _Tally:
    """Turns the events of one stream into pieces, and counts what the engine said of it."""

    def __init__(self, prompt_tokens: int, sampling: Sampling) -> None:
        self._sampling = sampling
        self._reason = "abort"
        self._stopped_by: int | str | None = None
        self._prompt = prompt_tokens
        self._cached = 0
        self._output = 0

    def add(self, event: Mapping[str, Any]) -> Piece | None:
        if "error" in event:
            raise from_body(event["error"])
        usage = event.get("usage")
        if usage:
            self._prompt = int(usage.get("prompt_tokens") or self._prompt)
            self._output = int(usage.get("completion_tokens") or self._output)
            self._cached = int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)
        choices = event.get("choices") or []
        if not choices:
            return None
        choice = choices[0]
        ids = tuple(choice.get("token_ids") or _named(choice.get("logprobs")))
        self._output += len(ids) if not usage else 0
        if choice.get("finish_reason"):
            ids = self._end(choice, ids)
        text = choice.get("text") or ""
        return Piece(ids, text) if ids or text else None

    def _end(self, choice: Mapping[str, Any], ids: tuple[int, ...]) -> tuple[int, ...]:
        """Note why it ended, and take the id that ended it off the last piece."""
        self._reason = str(choice["finish_reason"])
        self._stopped_by = choice.get("stop_reason")
        if self._reason != "stop" or isinstance(self._stopped_by, str) or not ids:
            return ids
        # vLLM names the id in stop_reason, except for the model's own end-of-text id, which then comes last.
        self._stopped_by = ids[-1]
        return ids[:-1]

    def finish(self) -> Finish:
        return Finish(self._reason, self._prompt, self._cached, self._output, self._stopped_by)


def _named(logprobs: Mapping[str, Any] | None) -> Iterator[int]:
    """The ids that stand for the tokens' texts in log probabilities."""
    for token in (logprobs or {}).get("tokens") or ():
        yield int(str(token).removeprefix("token_id:"))


def _root(url: str) -> str:
    """The server's root: an address may be given with or without the ``/v1`` of OpenAI clients."""
    return url.rstrip("/").removesuffix("/v1")
