"""A refactoring: the plan, its batches, and the rounds in which what went wrong goes back to the model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from laguna_context.errors import ContextError
from laguna_context.prompt import Prompt, PromptTooLarge
from laguna_daemon.errors import OverBudget, RepositoryError
from laguna_daemon.schemas import (
    AskRequest,
    Event,
    NoticeEvent,
    PlanEvent,
    PlannedFile,
    RefactorRequest,
    RefusalEvent,
    RoundEvent,
    TurnEvent,
    Usage,
)
from laguna_daemon.service import buffers as buffer_texts
from laguna_daemon.service import references
from laguna_daemon.service.materials import Materials
from laguna_daemon.service.refactoring import batches, files, grammar, tasks, words
from laguna_daemon.service.refactoring.answer import Answer
from laguna_daemon.service.refactoring.batches import Batch, Item
from laguna_daemon.service.refactoring.files import Planned, Scope
from laguna_daemon.service.refactoring.held import unsaved, version
from laguna_daemon.service.refactoring.ledger import Ledger
from laguna_daemon.service.refactoring.talks import Talk
from laguna_daemon.service.refactoring.turn import Speaker, Spoken
from laguna_daemon.service.stream import Emitter
from laguna_daemon.service.workspaces import OpenRoot

if TYPE_CHECKING:
    from laguna_daemon.service.service import Service

_OUTPUT_SHARE = 0.7  # of the output budget is planned for; guesses are guesses
_MARGIN = 64  # tokens of a task that are not counted in advance
Extras = Sequence[tuple[str, str]]


class Refactoring:
    """One request at work. ``ledger`` holds what comes of it; nothing is written."""

    def __init__(
        self,
        service: Service,
        request: RefactorRequest,
        emit: Emitter[Event],
        materials: Materials,
        opened: OpenRoot,
        talk: Talk,
    ) -> None:
        self.ledger = Ledger(opened.root, Scope(request.paths), allow_ignored=request.allow_ignored)
        self.usages: list[Usage] = []
        self.rounds = 0
        self.buffers: dict[str, str] = {}
        self._service = service
        self._request = request
        self._emit = emit
        self._materials = materials
        self._opened = opened
        self._talk = talk
        self._thinking = not request.structured and service.thinking(
            AskRequest(question=request.instruction, thinking=request.thinking)
        )
        self._speaker = Speaker(service, materials, request, emit, self._thinking)
        self._seen: dict[str, str] = {}
        self._references: Extras = ()
        self._plan = files.Plan((), ())
        self._tasks = tasks.Tasks(request.instruction, (), request.paths)

    async def run(self) -> None:
        """All rounds. Raises OverBudget, RepositoryError, EngineUnavailable; cancelling aborts in the engine."""
        await self._look()
        if self._request.check is not None:
            await self._mend()
        else:
            await self._first()
        while self.rounds < self._request.max_rounds and (reason := self.ledger.open):
            await self._again(reason)

    # the rounds --------------------------------------------------------------------------------------------------

    async def _first(self) -> None:
        grouped = await self._batches(self._plan.files)
        self._emit(
            PlanEvent(
                identifiers=list(self._plan.names),
                files=[PlannedFile(path=f.path, reason=f.reason, places=len(f.lines)) for f in self._plan.files],
                batches=[[item.planned.path for item in batch] for batch in grouped],
            )
        )
        if not grouped and self._plan.files:
            return  # every file of the plan was left out, each with its reason
        self._begin("the instruction", len(grouped) or 1)
        for number, batch in enumerate(grouped or [()], 1):
            left = self._left(batch)
            if left or not grouped:
                await self._turn(self._tasks.batch(left, number, len(grouped)), left)
        await self._compute()

    async def _mend(self) -> None:
        check = self._request.check
        assert check is not None
        self._begin("the check failed", 1)
        output = tasks.cut(check.output, self._materials.budget.task // 2, self._count)
        extras = ((f"output of {check.command}", output),)
        await self._turn(tasks.failed_check(check.command, check.exit_code), extras=extras)
        await self._compute()

    async def _again(self, reason: str) -> None:
        messages = [refusal.message for refusal in self.ledger.refused]
        if self.ledger.cut_off is not None:
            messages.insert(0, tasks.cut_off(self.ledger.cut_off))
        room = self._materials.budget.task - self._count(self._tasks.opening()) - _MARGIN
        texts = tasks.refusals(messages, self.ledger.kept, max(room, self._materials.budget.task // 4), self._count)
        missing = await self._batches(self.ledger.missing)
        self._begin(reason, len(texts) + len(missing))
        planned = [self.ledger.expected[r.path] for r in self.ledger.refused if r.path in self.ledger.expected]
        for text in texts:
            batch = tuple(Item(one, batches.edit_tokens(one)) for one in dict.fromkeys(planned))
            await self._turn(text, batch)
        for batch in missing:
            if left := self._left(batch):
                await self._turn(self._tasks.missing(left), left)
        await self._compute()

    def _left(self, batch: Batch) -> Batch:
        """Without the files that an answer before this batch's turn has dealt with already."""
        done = self.ledger.touched | self.ledger.skipped.keys()
        return tuple(item for item in batch if item.planned.path not in done)

    def _begin(self, reason: str, turns: int) -> None:
        self.rounds += 1
        self._emit(RoundEvent(round=self.rounds, rounds=self._request.max_rounds, reason=reason, turns=turns))

    async def _compute(self) -> None:
        """Plan all that stands; refusals are reported as they come."""
        refused = await asyncio.to_thread(self.ledger.plan, self._seen, self.buffers)
        for refusal in refused:
            self._emit(RefusalEvent(path=refusal.path, code=refusal.code, message=refusal.message))

    # one turn ----------------------------------------------------------------------------------------------------

    async def _turn(self, text: str, batch: Batch = (), extras: Extras = ()) -> None:
        seen = await self._look_again(batch)
        bound = self._request.structured and (batch or self.rounds == 1)
        structured = await self._structured(batch) if bound else None
        extras = (*extras, *(extra for item in batch for extra in item.extras))
        prompt = await self._prompt(text, extras)
        expected = min(self._service.hosting.resident.ever(prompt.ids), prompt.prefix_tokens)
        self._service.warmer.asked(self._opened, prompt)
        answer, spoken = Answer(self._emit), Spoken()
        try:
            await self._speaker.speak(prompt, spoken, answer.feed, structured)
        finally:
            self._talk.ids.answered(prompt, spoken.ids, self._materials.template.end_ids)
        answer.finish()
        self._opened.last = prompt
        usage = spoken.usage
        if usage.cached_tokens < expected:
            block = self._materials.launch.profile.block_size
            usage.broke_at = self._opened.workspace.where_broke(usage.cached_tokens, prompt, block=block)
        self.usages.append(usage)
        self.ledger.take(answer, seen)
        turn = len(self.usages)
        self._emit(TurnEvent(round=self.rounds, turn=turn, usage=usage, continued=spoken.continued))

    async def _prompt(self, text: str, extras: Extras) -> Prompt:
        """The prompt of the next turn; a conversation that has filled the context begins again behind the prefix."""
        try:
            return await self._try_prompt(text, extras)
        except PromptTooLarge as error:
            if not self._talk.ids.turns:
                raise OverBudget(error.what, error.advice) from error
        self._talk.renew()
        self._emit(NoticeEvent(message="The conversation had filled the context; it goes on in a new one."))
        try:
            return await self._try_prompt(text, extras)
        except PromptTooLarge as error:
            raise OverBudget(error.what, error.advice) from error

    async def _try_prompt(self, text: str, extras: Extras) -> Prompt:
        if not self._talk.ids.turns:
            text = f"{self._tasks.opening(self.ledger.touched)}\n{text}"
            extras = (*self._references, *extras)
        try:
            prompt = await asyncio.to_thread(
                self._opened.workspace.prompt,
                text,
                buffers=self.buffers,
                extras=extras,
                conversation=self._talk.ids,
                thinking=self._thinking,
            )
        except PromptTooLarge:
            raise
        except ContextError as error:
            raise RepositoryError(error.what, error.advice) from error
        self._service.warmer.asked(self._opened, prompt)
        for note in prompt.notes:
            self._emit(NoticeEvent(message=note))
        return prompt

    # looking at the repository -----------------------------------------------------------------------------------

    async def _look(self) -> None:
        """Make the plan, and say what the user has open and not saved."""
        await self._look_again(())
        root, selection, request = self._opened.root, self._opened.selection, self._request
        self._references = await asyncio.to_thread(
            references.resolve, root, request.references, self.buffers, selection
        )
        if request.check is not None:
            return
        scope = Scope(request.paths)
        self._plan = await asyncio.to_thread(files.find, root, selection, scope, request.instruction, self.buffers)
        self._tasks = tasks.Tasks(request.instruction, self._plan.names, request.paths)
        for note in self._plan.notes:
            self._emit(NoticeEvent(message=note))
        self.ledger.expect(self._plan.files)
        held = sorted(self.buffers.keys() & {planned.path for planned in self._plan.files})
        if held and request.target == "disk":
            message = f"Unsaved in an editor, so edits of them will be refused: {', '.join(held)}. Save them first."
            self._emit(NoticeEvent(message=message))

    async def _look_again(self, batch: Batch) -> dict[str, str]:
        """The version of every file that the model has whole, by path; taken before the prompt is made, so that a
        file that changes in between counts as changed."""
        await self._opened.settle()
        root = self._opened.root
        open_texts = buffer_texts.texts(self._service.buffers.under(root))
        self.buffers = await asyncio.to_thread(unsaved, root, open_texts)
        manifest = await asyncio.to_thread(self._opened.workspace.manifest)
        whole = ("full", "overlay")
        self._seen = {file.path: file.version for file in manifest.files if file.version and file.tier in whole}
        self._seen |= {path: version(text) for path, text in self.buffers.items()}
        self._seen |= {item.planned.path: item.digest for item in batch if item.digest}
        return self._seen

    async def _batches(self, planned: Sequence[Planned]) -> list[Batch]:
        """Files in batches, with the text of those that the prompt does not show; what cannot be shown is skipped."""
        budget = self._materials.budget
        room = max(budget.task - self._count(self._tasks.opening()) - _MARGIN, budget.task // 4)
        items: list[Item] = []
        for one in planned:
            if one.path in self._seen or one.reason == "named by the model":
                items.append(Item(one, batches.edit_tokens(one)))
                continue
            document = await asyncio.to_thread(files.read, self._opened.root, one.path, self._opened.selection)
            item = batches.size_up(one, document, room, self._count)
            if isinstance(item, str):
                self.ledger.skip(one.path, item)
            else:
                items.append(item)
        return batches.group(items, int(budget.output * _OUTPUT_SHARE), room, self._count)

    async def _structured(self, batch: Batch) -> Mapping[str, Any]:
        texts: dict[str, str] = {}
        for item in batch:
            path = item.planned.path
            document = await asyncio.to_thread(files.read, self._opened.root, path, self._opened.selection)
            text = self.buffers.get(path, document.text if document else None)
            if text is not None:
                texts[path] = text
        return grammar.grammar(batch, texts, self._plan.names, words.new_names(self._request.instruction))

    def _count(self, text: str) -> int:
        return int(self._materials.tokenizer.encode(text).size)
