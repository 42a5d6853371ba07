"""Ids of a text that is being typed: what stands well before its end is encoded once."""

from __future__ import annotations

import numpy as np

from laguna_context.tokens import Ids, Tokenizer

_KEPT = 8
_LONG = 400  # characters behind a kept beginning after which a longer one is looked for
_TAIL = 80  # characters at the end that typing changes
_FAILURES = 3
_NONE: Ids = np.empty(0, dtype=np.uint32)


class TypedTexts:
    """Encodes texts of which each is most often the one before with more at its end. Event loop only.

    A beginning ends with a letter or digit before white space, where byte-level tokenizers split. It is
    kept only if its ids and those of the rest come to the ids of the whole; a tokenizer that fails this is left alone.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._kept: dict[str, Ids] = {}  # used last at the end
        self._failures = 0
        self._controlled: dict[str, Ids] = {}

    def encode(self, text: str) -> Ids:
        """The ids of ``text``, as Tokenizer.encode gives them."""
        head = max((head for head in self._kept if text.startswith(head)), key=len, default="")
        before = _NONE
        if head:
            before = self._kept[head] = self._kept.pop(head)
        rest = text[len(head) :]
        ids = self._tokenizer.encode(rest)
        if len(rest) > _LONG and self._failures < _FAILURES:
            self._keep(head, before, rest, ids)
        return np.concatenate([before, ids]) if head else ids

    def controlled(self, text: str) -> Ids:
        """The ids of one of a profile's few texts that hold control tokens."""
        if text not in self._controlled:
            self._controlled[text] = self._tokenizer.encode_controlled(text)
        return self._controlled[text]

    def _keep(self, head: str, before: Ids, rest: str, ids: Ids) -> None:
        cut = _seam(rest)
        if cut is None:
            return
        more, tail = self._tokenizer.encode(rest[:cut]), self._tokenizer.encode(rest[cut:])
        if np.array_equal(np.concatenate([more, tail]), ids):
            self._kept[head + rest[:cut]] = np.concatenate([before, more])
            while len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
        else:
            self._failures += 1


def _seam(text: str) -> int | None:
    """The last place between a letter or digit and white space, some way before the end."""
    places = range(len(text) - _TAIL, 1, -1)
    return next((at for at in places if text[at].isspace() and text[at - 1].isalnum()), None)
