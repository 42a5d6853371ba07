"""Texts that are typed on have the ids they would have alone, and most of them is encoded once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laguna_context.tokens import Ids, Tokenizer, load_tokenizer
from laguna_daemon.completion.typed import TypedTexts
from support import tokenizers_like as like

SOURCE = Path(__file__).parents[3] / "daemon" / "laguna_daemon" / "completion"
ODD = "a = 1\n\n\n\tif x:\r\n\r\n  ünïcode 😋 12345\n\n" * 40 + "def f():\n" + "    x = 1\n" * 300


class Counting:
    """A tokenizer that counts the characters it is given."""

    def __init__(self, inner: Tokenizer) -> None:
        self.inner = inner
        self.characters = 0

    def encode(self, text: str) -> Ids:
        self.characters += len(text)
        return self.inner.encode(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@pytest.fixture(scope="module", params=["laguna", "smol", "gpt4"])
def tokenizer(
    request: pytest.FixtureRequest, laguna_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Tokenizer:
    if request.param == "laguna":
        return load_tokenizer(laguna_model)
    config = like.smol_like() if request.param == "smol" else like.gpt4_like()
    return load_tokenizer(like.write(tmp_path_factory.mktemp(request.param), config))


@pytest.mark.parametrize("name", ["window.py", "suggestions.py", "odd"])
def test_every_keystroke_gives_the_ids_of_the_whole(tokenizer, name):
    text = ODD if name == "odd" else (SOURCE / name).read_text()
    counting = Counting(tokenizer)
    typed = TypedTexts(counting)
    whole = 0
    for end in range(300, len(text), 7):
        assert np.array_equal(typed.encode(text[:end]), tokenizer.encode(text[:end])), text[end - 40 : end]
        whole += end
    assert counting.characters < whole * 0.5


def test_what_stands_behind_the_cursor_may_change(tokenizer):
    text = (SOURCE / "suggestions.py").read_text()
    typed = TypedTexts(tokenizer)
    for number in range(60):
        other = text[: 1500 + number] + f"{number}\n" + text[3000:3600] + "\n    end" * (number % 3)
        assert np.array_equal(typed.encode(other), tokenizer.encode(other))


def test_a_tokenizer_that_reads_across_lines_is_asked_for_the_whole():
    class Pairs:
        """Two characters to an id, whatever they are."""

        def encode(self, text: str) -> Ids:
            return np.array([hash(text[at : at + 2]) & 0xFFFF for at in range(0, len(text), 2)], dtype=np.uint32)

    pairs: Any = Pairs()
    typed = TypedTexts(pairs)
    text = "odd\n" + "xyz = 2;\n" * 201 + "x" * 81
    for more in range(9):
        longer = text + "x" * more
        assert np.array_equal(typed.encode(longer), pairs.encode(longer))
    assert not typed._kept


def test_few_beginnings_are_kept(tokenizer):
    typed = TypedTexts(tokenizer)
    for number in range(50):
        typed.encode(f"# file {number}\n" + "x = 1\n" * 300)
    assert len(typed._kept) == 8


def test_control_texts_are_encoded_once(laguna_model):
    counting: Any = Counting(load_tokenizer(laguna_model))
    typed = TypedTexts(counting)
    first = typed.controlled(counting.controls[0])
    assert first.size == 1 and typed.controlled(counting.controls[0]) is first
