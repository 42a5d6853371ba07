"""An inline completion: a small prompt, one short answer within a bounded time."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from typing import TYPE_CHECKING

from laguna_context.prompt import Prompt
from laguna_context.tokens import Ids
from laguna_daemon.completion.filters.construct import end_of_construct
from laguna_daemon.completion.filters.fences import is_chatty
from laguna_daemon.completion.filters.site import Site
from laguna_daemon.engine.client import Finish
from laguna_daemon.engine.sampling import Sampling
from laguna_daemon.residency.work import AdmittedClient
from laguna_daemon.schemas import CompleteRequest, CompleteResult, Usage
from laguna_daemon.service import infill
from laguna_daemon.service.materials import Materials

if TYPE_CHECKING:
    from laguna_daemon.service.service import Service

COMPLETION_PRIORITY = 0
BACKGROUND_PRIORITY = 1


class _Answer:
    """What has come of a completion so far."""

    def __init__(self, began: float, prompt_tokens: int, profile: str, withheld: str) -> None:
        self.began = began
        self._withheld = withheld
        self.text = ""
        self.usage = Usage(prompt_tokens=prompt_tokens, profile=profile)

    def add(self, text: str) -> None:
        if self.usage.ttft_ms is None:
            self.usage.ttft_ms = self._elapsed()
        self.text += text

    def result(self) -> CompleteResult:
        usage = self.usage
        usage.prefilled_tokens = usage.prompt_tokens - usage.cached_tokens
        usage.total_ms = self._elapsed()
        return CompleteResult(text=self._inserted(), usage=usage)

    def _inserted(self) -> str:
        """The text behind the white space that stands before the cursor; none if the model goes on elsewhere."""
        if not self._withheld:
            return self.text
        said = self.text.lstrip()
        _, newline, indentation = self.text[: len(self.text) - len(said)].rpartition("\n")
        wanted = self._withheld.rpartition("\n")[2]
        return indentation.removeprefix(wanted) + said if newline and indentation.startswith(wanted) else ""

    def _elapsed(self) -> float:
        return round((time.perf_counter() - self.began) * 1000, 1)


async def complete(service: Service, request: CompleteRequest) -> CompleteResult:
    """The text to insert between prefix and suffix; cancelling aborts the generation in the engine.

    Raises EngineUnavailable at once when the engine is not ready: nobody wants ghost text minutes late. After the
    setting ``completion.timeout`` what came by then is the answer, and its finish reason is ``timeout``.
    """
    began = time.perf_counter()
    client = await service.hosting.now(wake=True)
    materials = await service.hosting.materials()
    settings = service.settings.completion
    last = _resident(service, request, materials)
    ids = infill.build(materials, request, settings, last)
    fim = materials.launch.profile.fim if last is None else None
    answer = _Answer(began, len(ids), materials.launch.profile.name, infill.withheld(fim, request))
    sampling = materials.completion_sampling(
        request.max_tokens or settings.max_tokens, stop=() if fim is None else fim.stop
    )
    try:
        async with asyncio.timeout(settings.timeout), service.traffic.interactive(typing=True):
            await _generate(client, ids, sampling, request, answer)
    except TimeoutError:
        answer.usage.finish_reason = "timeout"
    return answer.result()


async def _generate(
    client: AdmittedClient, ids: Ids, sampling: Sampling, request: CompleteRequest, answer: _Answer
) -> None:
    """Take what comes until the engine, or the construct at the cursor, is at its end."""
    site = _site(request)
    priority = BACKGROUND_PRIORITY if request.background else COMPLETION_PRIORITY
    async with aclosing(client.generate(ids, sampling, priority=priority)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Finish):
                answer.usage.cached_tokens = piece.cached_tokens
                answer.usage.output_tokens = piece.output_tokens
                answer.usage.finish_reason = piece.reason
                continue
            answer.add(piece.text)
            answer.usage.output_tokens += len(piece.token_ids)
            if _ended(answer.text, site):
                answer.usage.finish_reason = "stop"
                return


def _ended(text: str, site: Site) -> bool:
    """Whether the text has left the construct at the cursor."""
    lines = text.split("\n")
    if len(lines) <= 2 or is_chatty(text):
        return False
    # The last line may be the beginning of one that still belongs to the construct.
    return end_of_construct(lines[:-1], site) < len(lines) - 1


def _site(request: CompleteRequest) -> Site:
    return Site(before=request.prefix.rpartition("\n")[2], rest=request.suffix.partition("\n")[0].rstrip("\r"))


def _resident(service: Service, request: CompleteRequest, materials: Materials) -> Prompt | None:
    """The latest prompt of the request's repository if a completion is to stand behind it and the engine holds it.

    Otherwise a completion is local: reading a repository, or prefilling it, takes longer than anybody waits.
    """
    if request.root is None or (request.scope or service.settings.completion.context) != "repository":
        return None
    opened = next((found for found in service.workspaces.opened() if str(found.root) == request.root), None)
    last = None if opened is None else opened.last
    if last is None or (last.thinking and materials.template.thinking_differs):
        return None
    held = last.prefix_tokens + last.overlay_tokens
    return last if service.hosting.resident.common(last.ids[:held]) >= last.prefix_tokens else None
