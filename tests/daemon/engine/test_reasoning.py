"""Reasoning is told from the answer by ids alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from laguna_daemon.engine.client import Piece
from laguna_daemon.engine.reasoning import Part, ReasoningSplitter

OPEN, CLOSE = 18, 19
WORDS = {1: "I ", 2: "think", 3: "</think>", 4: "Yes", 5: ".", 6: "λ"}


def decode(ids: Sequence[int]) -> bytes:
    return "".join(WORDS[number] for number in ids).encode()


def piece(*ids: int) -> Piece:
    return Piece(ids, "".join(WORDS.get(number, "") for number in ids))


def split(pieces: list[Piece], *, thinking: bool) -> tuple[str, str, int]:
    splitter = ReasoningSplitter(OPEN, CLOSE, thinking=thinking, decode=decode)
    parts = [part for one in pieces for part in splitter.feed(one)]
    texts = {kind: "".join(part.text for part in parts if part.kind == kind) for kind in ("thinking", "text")}
    ids = [number for part in parts for number in part.token_ids]
    assert ids == [number for one in pieces for number in one.token_ids if number not in (OPEN, CLOSE)]
    return texts["thinking"], texts["text"], splitter.reasoning_tokens


STREAM = (1, 2, CLOSE, 4, 6, 5)


@pytest.mark.parametrize("size", range(1, 7))
def test_however_many_tokens_arrive_at_once(size: int) -> None:
    pieces = [piece(*STREAM[start : start + size]) for start in range(0, len(STREAM), size)]
    assert split(pieces, thinking=True) == ("I think", "Yesλ.", 3)


def test_the_words_of_the_marker_mean_nothing() -> None:
    assert split([piece(1), piece(3), piece(2), piece(CLOSE), piece(4)], thinking=True) == ("I </think>think", "Yes", 4)
    assert split([piece(3, 4)], thinking=False) == ("", "</think>Yes", 0)


def test_without_thinking_all_is_answer() -> None:
    assert split([piece(4), piece(5)], thinking=False) == ("", "Yes.", 0)


def test_a_model_that_starts_to_think_by_itself() -> None:
    assert split([piece(OPEN), piece(1, 2), piece(CLOSE, 4)], thinking=False) == ("I think", "Yes", 4)


def test_cut_off_while_thinking() -> None:
    assert split([piece(1), piece(2)], thinking=True) == ("I think", "", 2)


def test_text_that_lags_behind_its_ids() -> None:
    """The engine holds back an incomplete character: ids without text, then text for both."""
    splitter = ReasoningSplitter(OPEN, CLOSE, thinking=False, decode=decode)
    assert list(splitter.feed(Piece((6,), ""))) == [Part("text", (6,), "")]
    assert list(splitter.feed(Piece((5,), "λ."))) == [Part("text", (5,), "λ.")]


def test_pieces_without_ids_are_text() -> None:
    """A server that is not vLLM sends no ids."""
    splitter = ReasoningSplitter(OPEN, CLOSE, thinking=False, decode=decode)
    assert list(splitter.feed(Piece((), "Yes"))) == [Part("text", (), "Yes")]


def test_a_stop_text_that_cut_the_answer() -> None:
    """The ids hold the stop text, the text does not."""
    splitter = ReasoningSplitter(OPEN, CLOSE, thinking=True, decode=decode)
    parts = list(splitter.feed(Piece((2, CLOSE, 4, 5), "thinkYes")))
    assert "".join(part.text for part in parts) == "thinkYes"
