"""What prompts are made of for one model: its tokenizer, its template, the budget, the sampling."""

from __future__ import annotations

import numpy as np

from laguna_context.conversation import Conversation
from laguna_context.errors import ContextError
from laguna_context.prompt import Budget, Prompt, PromptTooLarge
from laguna_context.template import ChatTemplate, load_template
from laguna_context.tokens import Ids, Tokenizer, load_tokenizer
from laguna_daemon.completion.typed import TypedTexts
from laguna_daemon.engine.launch import Launch
from laguna_daemon.engine.reasoning import ReasoningSplitter
from laguna_daemon.engine.sampling import Sampling
from laguna_daemon.errors import EngineUnavailable, OverBudget
from laguna_daemon.paths import cache_dir
from laguna_daemon.schemas import AskRequest
from laguna_daemon.service.instructions import SYSTEM


class Materials:
    """Loaded once for an engine; immutable and, but for `typed`, safe to use from threads."""

    def __init__(self, launch: Launch) -> None:
        """Load tokenizer and template from the model's folder; blocks for some tenths of a second.

        Raises EngineUnavailable if the folder's tokenizer or template is broken.
        """
        self.launch = launch
        try:
            self.tokenizer: Tokenizer = load_tokenizer(launch.model.path, cache=cache_dir())
            self.template: ChatTemplate = load_template(launch.model.path, self.tokenizer, SYSTEM)
        except ContextError as error:
            raise EngineUnavailable(error.what, error.advice) from error
        self.typed = TypedTexts(self.tokenizer)
        section = launch.profile.budget
        context = min(section.context, launch.traits.context or section.context)
        self.budget = Budget(context=context, output=section.output, task=section.task, overlay=section.overlay)

    def fits(self, other: Materials) -> bool:
        """Whether prompts made of these can go on with ``other``: same ids, same template, same budget."""
        mine, theirs = self, other
        return (mine.tokenizer.fingerprint, mine.template.fingerprint, mine.budget) == (
            theirs.tokenizer.fingerprint,
            theirs.template.fingerprint,
            theirs.budget,
        )

    def plain_prompt(self, text: str, *, thinking: bool = False, conversation: Conversation | None = None) -> Prompt:
        """A prompt without any repository; raises OverBudget if it leaves no room for an answer."""
        head, tail = self.template.open_first(thinking), self.template.tail(thinking)
        again = self.template.open_next(thinking)
        task = np.concatenate([self.tokenizer.encode(f"<task>\n{text}\n"), tail])
        earlier: list[Ids] = []
        if conversation is not None and conversation.ids.size:
            head, earlier = conversation.ids, [again]
        elif conversation is not None:
            for turn in conversation.turns:
                earlier += [turn.task, turn.answer, again]
        ids = np.concatenate([head, *earlier, task])
        if len(ids) > self.budget.prompt:
            error = PromptTooLarge(len(ids), self.budget.prompt, "question")
            raise OverBudget(error.what, error.advice)
        return Prompt(
            ids=ids,
            prefix_tokens=len(head),
            overlay_tokens=0,
            task_tokens=len(task),
            snapshot="",
            overlay_seq=0,
            identity=self.template.fingerprint,
            buffers_used=(),
            notes=(),
            documents=(),
            thinking=thinking,
        )

    def splitter(self, *, thinking: bool) -> ReasoningSplitter:
        """Tells reasoning from answer; a model without such tokens never reasons."""
        opening, closing = self.template.think_open, self.template.think_close
        known = opening is not None and closing is not None
        return ReasoningSplitter(
            opening if opening is not None else -1,
            closing if closing is not None else -1,
            thinking=thinking and known,
            decode=self.tokenizer.decode,
        )

    def sampling(self, request: AskRequest, prompt_tokens: int) -> Sampling:
        """The request's sampling over the profile's defaults, within what the context leaves."""
        room = self.budget.context - prompt_tokens
        changes = {
            name: value
            for name, value in (("temperature", request.temperature), ("seed", request.seed))
            if value is not None
        }
        wanted = request.max_tokens or self.budget.output
        return self.launch.sampling(max(1, min(wanted, room)), **changes)

    def completion_sampling(self, max_tokens: int, *, stop: tuple[str, ...] = ()) -> Sampling:
        """Greedy and short: a suggestion should not change while one looks at it."""
        return self.launch.sampling(max_tokens, temperature=0.0, frequency_penalty=0.0, stop=stop)
