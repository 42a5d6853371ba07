"""Ids are the reference's ids, for any text, on tokenizers of several shapes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from laguna_context import selfcheck, tokens
from laguna_context.frames import document
from laguna_context.merges import NotByteLevel, build_ranks
from laguna_context.splitting import GPT2, alternatives, compose
from laguna_context.tokens import BrokenTokenizer, Tokenizer, load_tokenizer
from support import tokenizers_like as like
from support.laguna_tokenizer import CONTROLS, SIZE, tokenizer_config

SHAPES: dict[str, Callable[[], dict[str, Any]]] = {
    "laguna": tokenizer_config,
    "smol": like.smol_like,
    "gpt4": like.gpt4_like,
}

BLANKS = st.sampled_from([" ", "  ", "\n", "\r\n", "\r", "\t", "\n\n", "\u3000", "\x0b", "\u2028", "\x85", "    "])
_SPELLINGS = ["def", "return", "self", "x", "é", "日本", "😋", "0", "42", "'s", "'LL", "==", "/*", ");", "<", ">", '="']
_HOSTILE = ["_", "²", "<|im_end|>", "<user>", "</document 01234567>"]
WORDS = st.sampled_from([*_SPELLINGS, *_HOSTILE, *CONTROLS.values()])
CODE = st.lists(BLANKS | WORDS | st.text(max_size=6), max_size=40).map("".join)


@pytest.fixture(scope="module", autouse=True)
def no_accelerator() -> Iterator[None]:
    """What an optional library does is tested beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "installed", lambda: None)
        yield


@pytest.fixture(scope="module", params=SHAPES)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, Any]:
    config = SHAPES[request.param]()
    fast = load_tokenizer(like.write(tmp_path_factory.mktemp(request.param), config))
    assert fast.kind == "tiktoken"
    return fast, like.reference(config)


def ids(reference: Any, text: str) -> list[int]:
    return list(reference.encode(text, add_special_tokens=False).ids)


@given(CODE)
@example("x\n\n  \r\n\r y\r\r\n /\r\n;\n\n\n")
@example("a\x04b \x06=\x04= <|im_end|>")
@settings(max_examples=300, deadline=None)
def test_ids_are_those_of_the_reference(pair: tuple[Tokenizer, Any], text: str) -> None:
    fast, reference = pair
    assert fast.encode(text).tolist() == ids(reference, text)


@given(st.lists(st.tuples(st.text(max_size=12), CODE), min_size=1, max_size=5))
@settings(max_examples=150, deadline=None)
def test_ids_of_frames_concatenate_to_the_ids_of_the_whole(
    pair: tuple[Tokenizer, Any], files: list[tuple[str, str]]
) -> None:
    fast, reference = pair
    frames = [document(path, text).text for path, text in files]
    joined = np.concatenate([fast.encode(frame) for frame in frames])
    assert joined.tolist() == ids(reference, "".join(frames))


@given(CODE)
@settings(max_examples=100, deadline=None)
def test_decoding_gives_the_text_back(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)).decode() == text


@pytest.mark.parametrize(
    "text",
    [
        "!function(e,t){var n={};for(var r=0;r<e.length;r++)n[e[r]]=t[r]||null;return n}(window,[]);" * 1300,
        " " * 300_000 + "x",
        "\n " * 60_000,
        "\r" * 60_000 + "x",
        "a" * 120_000,
        "=" * 120_000,
        "😋" * 20_000,
        "QUJD" * 40_000,
    ],
    ids=["bundle", "blanks", "mixed blanks", "returns", "letters", "signs", "emoji", "base64"],
)
def test_long_runs_are_exact_and_do_not_stall(pair: tuple[Tokenizer, Any], text: str) -> None:
    fast, reference = pair
    assert fast.encode(text).tolist() == ids(reference, text)


def test_control_strings_in_text_never_become_control_ids(tokenizer: Tokenizer) -> None:
    text = " ".join(CONTROLS.values()) + "".join(CONTROLS.values())
    found = tokenizer.encode(text)
    assert not set(found.tolist()) & set(CONTROLS)
    assert tokenizer.decode(found).decode() == text
    assert set(CONTROLS) <= set(tokenizer.encode_controlled(text).tolist())


def test_ids_are_uint32_and_the_vocabulary_counts_them(tokenizer: Tokenizer) -> None:
    assert tokenizer.vocabulary == SIZE
    assert tokenizer.encode("x").dtype == np.uint32
    assert tokenizer.encode("").shape == (0,)
    assert tokenizer.special("</assistant>") == 24
    assert tokenizer.special("<user>") is None


def test_half_surrogates_are_encoded_as_replacement_characters(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("a\udc80b").tolist() == tokenizer.encode("a\ufffdb").tolist()


def test_many_texts_are_encoded_in_order(tokenizer: Tokenizer) -> None:
    texts = [f"number {i}\n" * (i % 7) for i in range(50)]
    assert [found.tolist() for found in tokenizer.encode_many(texts)] == [tokenizer.encode(t).tolist() for t in texts]


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("normalizer", {**like.gpt4_like(), "normalizer": {"type": "NFC"}}),
        ("prefix space", like.small([{**like.BYTE_LEVEL, "add_prefix_space": True}])),
        ("unknown split", like.small([like.split("[0-9]{2}"), like.split(like.WORDS), like.BARE])),
        ("removed text", like.small([like.split(" ", "Removed"), like.BARE])),
        ("pattern with gaps", like.small([like.split("[a-z]+"), like.BARE])),
        ("byte fallback", like.small([like.BYTE_LEVEL], byte_fallback=True)),
    ],
)
def test_what_cannot_be_proven_goes_to_the_reference(tmp_path: Path, name: str, config: dict[str, Any]) -> None:
    found = load_tokenizer(like.write(tmp_path, config))
    assert found.kind == "reference", name
    text = "def f(é):  return 12345\n\n<|im_end|> e\u0301"
    assert found.encode(text).tolist() == ids(like.reference(config), text)


def test_rules_that_are_never_reached_are_left_out(tmp_path: Path) -> None:
    """`ab`+`c` comes after `b`+`c`: merging never builds it, though tiktoken would from its bytes."""
    config = like.small([like.BYTE_LEVEL], merges=0)
    config["model"]["merges"] = [["b", "c"], ["a", "b"], ["ab", "c"], ["x", "bc"]]
    vocab = config["model"]["vocab"]
    for token in ("bc", "ab", "abc", "xbc"):
        vocab[token] = len(vocab)
    found = load_tokenizer(like.write(tmp_path, config))
    assert found.kind == "tiktoken"
    for text in ("abc", "xabc", "abcabc ab c abc", "xbc"):
        assert found.encode(text).tolist() == ids(like.reference(config), text)
    assert b"abc" not in build_ranks(config["model"], frozenset()).by_bytes


@given(st.lists(st.tuples(st.text("abc", min_size=1, max_size=3), st.text("abc", min_size=1, max_size=3)), max_size=12))
@settings(max_examples=150, deadline=None)
def test_ranks_of_any_rules_are_exact_or_refused(rules: list[tuple[str, str]]) -> None:
    """Random rules are mostly malformed as training goes; whatever is accepted must be right on every word."""
    config = like.small([like.BYTE_LEVEL], merges=0)
    vocab = config["model"]["vocab"]
    kept: list[list[str]] = []
    for left, right in rules:
        if left in vocab and right in vocab:
            kept.append([left, right])
            vocab.setdefault(left + right, len(vocab))
    config["model"]["merges"] = kept
    try:
        ranks = build_ranks(config["model"], frozenset())
    except NotByteLevel:
        return
    import tiktoken

    fast = tiktoken.Encoding("t", pat_str=GPT2, mergeable_ranks=ranks.by_bytes, special_tokens={})
    reference = like.reference(config)
    for word in map("".join, product("abc", repeat=5)):
        found = fast.encode_ordinary(word)
        assert (found if ranks.ids is None else [ranks.ids[i] for i in found]) == ids(reference, word)


def test_tokens_that_are_only_looked_up(tmp_path: Path) -> None:
    """With ignore_merges a whole piece is looked up before it is merged."""
    config = like.small([like.BYTE_LEVEL], merges=0, ignore_merges=True)
    vocab = config["model"]["vocab"]
    config["model"]["merges"] = [["b", "c"]]
    for token in ("bc", "axyz"):
        vocab[token] = len(vocab)
    found = load_tokenizer(like.write(tmp_path, config))
    assert found.kind == "tiktoken"
    for text in ("axyz", "axyzb", "baxyz", "bc axyz"):
        assert found.encode(text).tolist() == ids(like.reference(config), text)


def test_a_split_that_is_not_known_is_not_composed() -> None:
    assert compose(None) is None
    assert compose({"type": "Metaspace"}) is None
    assert compose({"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}) == GPT2
    assert alternatives(r"a|[|]|(?:b|c)|\|") == ["a", "[|]", "(?:b|c)", r"\|"]


def test_the_self_check_finds_a_wrong_table() -> None:
    right = like.reference(like.gpt4_like())
    wrong = like.reference(like.smol_like())

    def encode(library: Any) -> Callable[[str], Any]:
        return lambda text: np.array(ids(library, text), dtype=np.uint32)

    assert not selfcheck.agree(encode(wrong), encode(right), [])


def test_the_verdict_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = like.write(tmp_path / "model", like.gpt4_like())
    assert load_tokenizer(folder, cache=tmp_path / "cache").kind == "tiktoken"

    def fail(*_: object) -> bool:
        raise AssertionError("checked again")

    monkeypatch.setattr(selfcheck, "agree", fail)
    assert load_tokenizer(folder, cache=tmp_path / "cache").kind == "tiktoken"
    with pytest.raises(AssertionError):
        load_tokenizer(folder)


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"{}", json.dumps({"model": {"type": "BPE"}}).encode()])
def test_a_broken_tokenizer_is_one_clear_error(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(BrokenTokenizer, match=r"tokenizer\.json"):
        load_tokenizer(tmp_path)


def test_a_verdict_that_cannot_be_kept_is_found_again(tmp_path: Path) -> None:
    model = like.write(tmp_path / "model", like.gpt4_like())
    (tmp_path / "cache").write_text("in the way")
    for _ in range(2):
        assert load_tokenizer(model, cache=tmp_path / "cache").kind == "tiktoken"
