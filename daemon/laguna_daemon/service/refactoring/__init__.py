"""Refactoring a whole repository: what the model proposes, computed as one set of edits. Nothing here writes files.

``words``, ``files`` and ``batches`` make the plan, ``tasks`` words it, ``turn`` gets an answer and ``answer`` reads
it, ``ledger`` keeps what stands and what was refused, ``rounds`` goes on until all is done or the rounds are over.
``wire`` carries the set to the client, which alone writes it and runs the user's check command: what a model says is
never run, and the user's command runs where the user's environment is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laguna_daemon import edits
from laguna_daemon.errors import UsageError
from laguna_daemon.schemas import (
    AskRequest,
    Event,
    NoticeEvent,
    ProposalEvent,
    RefactorRequest,
    RefusalEvent,
    ReportEvent,
    SkippedFile,
)
from laguna_daemon.service.ask import prepare
from laguna_daemon.service.refactoring import turn, wire
from laguna_daemon.service.refactoring.held import unsaved
from laguna_daemon.service.refactoring.recovery import recover
from laguna_daemon.service.refactoring.rounds import Refactoring
from laguna_daemon.service.refactoring.talks import Talk, Talks
from laguna_daemon.service.stream import Emitter, stream

if TYPE_CHECKING:
    from laguna_daemon.service.service import Service

__all__ = ["Outcome", "Talks", "collect", "propose", "publish", "recover", "unsaved"]


@dataclass(frozen=True)
class Outcome:
    """What a refactoring came to: the set of edits, None if there is none to apply, and the report about it."""

    changes: edits.ChangeSet | None
    report: ReportEvent


async def propose(service: Service, request: RefactorRequest, emit: Emitter[Event]) -> Outcome:
    """Work out the edits that ``request`` asks for, reporting to ``emit``; cancelling aborts in the engine.

    Raises UsageError, RepositoryError, OverBudget, EngineUnavailable. Blocks that stay refused are no error: the
    report has them, and there are no changes then.
    """
    if not request.instruction.strip():
        raise UsageError("The instruction is empty.", 'Say what to do: laguna-daemon refactor "rename `a` to `b`".')
    if request.check is not None and request.conversation is None:
        raise UsageError("A failed check goes on with a refactoring.", "Name its conversation.")
    for line in await asyncio.to_thread(recover):
        emit(NoticeEvent(message=line))
    asked = AskRequest(root=request.root, question=request.instruction, force=request.force)
    materials, opened = await prepare(service, asked, emit)
    assert opened is not None
    talk = service.refactorings.open(request.conversation, opened.root)
    work = Refactoring(service, request, emit, materials, opened, talk)
    talk.busy = True
    try:
        await work.run()
    finally:
        talk.busy = False
    return await asyncio.to_thread(_outcome, work, request, talk)


async def publish(service: Service, request: RefactorRequest, emit: Emitter[Event]) -> None:
    """``propose`` for a transport: the proposal, if there is one, and the report are the last events."""
    outcome = await propose(service, request, emit)
    if outcome.changes is not None:
        files = await asyncio.to_thread(wire.to_wire, outcome.changes)
        emit(ProposalEvent(root=str(outcome.changes.root), files=files))
    emit(outcome.report)


async def collect(service: Service, request: RefactorRequest, report: Callable[[Event], None]) -> Outcome:
    """``propose`` for a caller in this process, who gets the events one by one and the outcome itself."""
    outcomes: list[Outcome] = []

    async def work(emit: Emitter[Event]) -> None:
        outcomes.append(await propose(service, request, emit))

    async with aclosing(stream(work)) as events:
        async for event in events:
            report(event)
    return outcomes[0]


def _outcome(work: Refactoring, request: RefactorRequest, talk: Talk) -> Outcome:
    ledger = work.ledger
    changes = None if ledger.refused or ledger.cut_off else ledger.changes
    refused = [RefusalEvent(path=r.path, code=r.code, message=r.message) for r in ledger.refused]
    if ledger.cut_off is not None:
        refused.append(RefusalEvent(path=ledger.cut_off.path, code="cut off", message=ledger.cut_off.message))
    held = sorted(changes.buffers) if changes and request.target == "disk" else []
    refused += [_unsaved(path) for path in held]
    if refused:
        changes = None
    missing = [planned.path for planned in ledger.missing]
    skipped = {path: reason for path, reason in ledger.skipped.items() if path not in ledger.touched}
    report = ReportEvent(
        outcome="refused" if refused else "incomplete" if missing else "complete" if changes else "nothing",
        done=wire.described(changes.changes) if changes else [],
        skipped=[SkippedFile(path=path, reason=reason) for path, reason in sorted(skipped.items())],
        missing=missing,
        refused=refused,
        notes=list(dict.fromkeys([*ledger.notes, *(changes.notes if changes else ())])),
        dirty=list(edits.dirty(changes.root, changes.paths)) if changes else [],
        unsaved=held,
        rounds=work.rounds,
        turns=len(work.usages),
        conversation=talk.id,
        usage=turn.total(work.usages),
    )
    return Outcome(changes, report)


def _unsaved(path: str) -> RefusalEvent:
    message = f"{path} has unsaved changes in an editor. Save it, or take the edits in the editor."
    return RefusalEvent(path=path, code="unsaved", message=message)
