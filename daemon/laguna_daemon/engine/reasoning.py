"""Telling a model's reasoning from its answer by the ids of the special tokens between them.

The text of those tokens means nothing here: a model that writes about them in plain text does not end its reasoning.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from laguna_daemon.engine.client import Piece


@dataclass(frozen=True, slots=True)
class Part:
    """Tokens and text of one kind. The special ids themselves are in no part."""

    kind: Literal["thinking", "text"]
    token_ids: tuple[int, ...]
    text: str


class ReasoningSplitter:
    """Splits the pieces of one answer.

    ``thinking`` says whether the prompt ended inside the reasoning (after the opening token). ``decode`` turns ids
    into bytes; it is only needed where several tokens arrive at once, as speculative decoding makes them.
    """

    def __init__(
        self, open_id: int, close_id: int, *, thinking: bool, decode: Callable[[Sequence[int]], bytes]
    ) -> None:
        self._marks = {open_id: True, close_id: False}
        self._thinking = thinking
        self._decode = decode
        self.reasoning_tokens = 0

    def feed(self, piece: Piece) -> Iterator[Part]:
        """The parts of one piece, in order; counts reasoning tokens, the closing one included."""
        runs = list(self._runs(piece.token_ids))
        texts = self._texts(runs, piece.text)
        for (thinking, ids), text in zip(runs, texts, strict=True):
            if ids or text:
                yield Part("thinking" if thinking else "text", ids, text)

    def _runs(self, ids: Sequence[int]) -> Iterator[tuple[bool, tuple[int, ...]]]:
        run: list[int] = []
        for number in ids:
            if number not in self._marks:
                run.append(number)
                self.reasoning_tokens += self._thinking
                continue
            yield self._thinking, tuple(run)
            run = []
            self.reasoning_tokens += self._thinking or self._marks[number]
            self._thinking = self._marks[number]
        yield self._thinking, tuple(run)

    def _texts(self, runs: list[tuple[bool, tuple[int, ...]]], text: str) -> list[str]:
        """Share the engine's text out: later runs take what their ids decode to from its end, the first the rest."""
        texts: list[str] = []
        for _, ids in reversed(runs[1:]):
            own = codecs.getincrementaldecoder("utf-8")("replace").decode(self._decode(ids))
            share = own if text.endswith(own) else text[-len(own) :] if len(own) < len(text) else text
            texts.append(share)
            text = text[: len(text) - len(share)]
        return [text, *reversed(texts)]
