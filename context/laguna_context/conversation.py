"""Turns as token ids. A second turn starts with the very ids of the first, the model's answer included."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from laguna_context.prompt import Prompt, Span
from laguna_context.tokens import Ids


@dataclass(frozen=True, slots=True)
class Turn:
    """`task`: ids of task and generation prompt; `answer`: as generated, without the stop id."""

    task: Ids
    answer: Ids
    thinking: bool


@dataclass
class Conversation:
    """Pins (snapshot, overlay position), the overlay being named by its lineage. `ids`: everything up to the end of
    the last answer."""

    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    turns: list[Turn] = field(default_factory=list)
    snapshot: str = ""
    lineage: str = ""
    overlay_seq: int = 0
    prefix_tokens: int = 0
    overlay_tokens: int = 0
    ids: Ids = field(default_factory=lambda: np.empty(0, dtype=np.uint32))
    documents: tuple[Span, ...] = ()
    rebased: int = 0

    def answered(self, prompt: Prompt, answer_ids: ArrayLike | Sequence[int], end_ids: Sequence[int] = ()) -> None:
        """Append a turn: the prompt that was sent and the ids the model generated, all that came if it was cut short.

        A trailing id of `end_ids` is taken off: our own turn closer follows.
        """
        answer = np.asarray(answer_ids, dtype=np.uint32).reshape(-1)
        while answer.size and int(answer[-1]) in end_ids:
            answer = answer[:-1]
        task = prompt.ids[prompt.ids.size - prompt.task_tokens :]
        self.turns.append(Turn(task, answer, prompt.thinking))
        if self.lineage and self.lineage != prompt.lineage:
            self.rebased += 1
        self.lineage, self.snapshot, self.overlay_seq = prompt.lineage, prompt.snapshot, prompt.overlay_seq
        self.prefix_tokens, self.overlay_tokens = prompt.prefix_tokens, prompt.overlay_tokens
        self.documents = prompt.documents
        self.ids = np.concatenate([prompt.ids, answer])
