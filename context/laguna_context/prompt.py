"""Prefix, overlay and task joined into the ids of one prompt, with an account of what lies where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from laguna_context.errors import ContextError
from laguna_context.tokens import Ids


@dataclass(frozen=True)
class Budget:
    """Tokens: of the model's context, and of it those reserved for the answer, the task and the overlay; the snapshot
    gets what remains."""

    context: int
    output: int
    task: int
    overlay: int

    def snapshot(self, around: int) -> int:
        """Tokens for the snapshot, with `around` tokens of template about it."""
        return max(0, self.context - self.output - self.task - self.overlay - around)

    @property
    def prompt(self) -> int:
        """The longest prompt that leaves room for the answer."""
        return self.context - self.output


@dataclass(frozen=True, slots=True)
class Span:
    """A document's place in a prompt: tokens from `start` up to, not including, `end`."""

    path: str
    start: int
    end: int


@dataclass(frozen=True)
class Prompt:
    """`ids`: shape (n,), uint32 = prefix | overlay | earlier turns | task and template tail.

    `snapshot`, `overlay_seq`: what it was built from (`lineage` names the overlay that the number counts in);
    `identity`: of its prefix; `buffers_used`: files shown unsaved; `notes`: what the user should be told; `documents`:
    the places of files and changes.
    """

    ids: Ids
    prefix_tokens: int
    overlay_tokens: int
    task_tokens: int
    snapshot: str
    overlay_seq: int
    identity: str
    buffers_used: tuple[str, ...]
    notes: tuple[str, ...]
    documents: tuple[Span, ...]
    thinking: bool = False
    conversation_tokens: int = 0
    lineage: str = ""


class PromptTooLarge(ContextError):
    """The prompt would not leave room for an answer. `tokens`: its length; `limit`: what is allowed."""

    def __init__(self, tokens: int, limit: int, largest: str) -> None:
        self.tokens = tokens
        self.limit = limit
        super().__init__(
            f"The prompt has {tokens:,} tokens and may have {limit:,}: the {largest} is too long.",
            "Ask something shorter, start a new conversation, or leave files out of the repository's context.",
        )


def spans(places: Sequence[tuple[str, int]], start: int) -> tuple[Span, ...]:
    """Places of documents that follow each other from token `start`, given as (path, tokens)."""
    out = []
    for path, tokens in places:
        out.append(Span(path, start, start + tokens))
        start += tokens
    return tuple(out)
