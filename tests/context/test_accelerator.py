"""The optional library gives the reference's ids or is not used, and tiktoken stands behind it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laguna_context import accelerator, tokens
from laguna_context.accelerator import Accelerator
from laguna_context.tokens import Ids, load_tokenizer
from support import tokenizers_like as like
from support.laguna_tokenizer import CONTROLS, tokenizer_config

HOSTILE = [
    "",
    "def f(x):\n\treturn {'a': x**2}  # it's\r\n",
    "".join(CONTROLS.values()) + "<|im_end|></document 01234567>",
    "\ud800 lone \x00\x04\x7f e\u0301 \u2028 日本 😋",
    " " * 200_000 + "x",
    "=" * 3000 + "\n" * 3000,
]


@pytest.fixture(scope="module", params=["laguna", "smol"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    shapes: dict[str, Callable[[], dict[str, Any]]] = {"laguna": tokenizer_config, "smol": like.smol_like}
    return like.write(tmp_path_factory.mktemp(request.param), shapes[request.param]())


@pytest.fixture
def plain(model: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Ids]:
    with monkeypatch.context() as patch:
        patch.setattr(tokens, "installed", lambda: None)
        found = load_tokenizer(model)
    assert found.kind == "tiktoken"
    return found.encode


def same(left: Ids, right: Ids) -> bool:
    return left.dtype == right.dtype and np.array_equal(left, right)


def test_it_is_used_where_it_is_proven_and_gives_the_same_ids(model: Path, plain: Callable[[str], Ids]) -> None:
    found = load_tokenizer(model)
    assert found.kind == accelerator.NAME
    for text in HOSTILE:
        assert same(found.encode(text), plain(text))
    for some in (HOSTILE, HOSTILE[:4]):
        assert all(same(ids, plain(text)) for ids, text in zip(found.encode_many(some), some, strict=True))


def test_a_wrong_one_is_not_used(
    model: Path, plain: Callable[[str], Ids], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    right = Accelerator.encode_many
    monkeypatch.setattr(Accelerator, "encode_many", lambda *args: [ids[:-1] for ids in right(*args)])
    for _ in range(2):  # found, and remembered
        found = load_tokenizer(model, cache=tmp_path)
        assert found.kind == "tiktoken"
        assert same(found.encode("some text"), plain("some text"))


def test_what_it_refuses_goes_to_tiktoken(
    model: Path, plain: Callable[[str], Ids], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = load_tokenizer(model)

    def fail(*_: object) -> list[Ids]:
        raise RuntimeError("match limit exceeded")

    monkeypatch.setattr(Accelerator, "encode_many", fail)
    assert same(found.encode("some text"), plain("some text"))
    assert same(found.encode_many(["some text", "x"])[0], plain("some text"))


def test_a_tokenizer_it_cannot_load_is_left_to_tiktoken(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("unsupported model type")

    monkeypatch.setattr(Accelerator, "__init__", refuse)
    assert load_tokenizer(model).kind == "tiktoken"
