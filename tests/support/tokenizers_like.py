"""Small tokenizers of other shapes, cut from the Laguna-shaped one, and the reference they are measured against."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import tokenizers

from support.laguna_tokenizer import WORDS, byte_alphabet, tokenizer_config

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
BARE = {**BYTE_LEVEL, "use_regex": False}
DIGITS = {"type": "Digits", "individual_digits": True}


def split(pattern: str, behavior: str = "Isolated") -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": False}


@lru_cache(maxsize=1)
def _laguna() -> dict[str, Any]:
    return tokenizer_config()


def small(chain: list[dict[str, Any]], *, merges: int = 3000, without: str = "", **model: Any) -> dict[str, Any]:
    """A `tokenizer.json` object with the first `merges` rules, this pre-tokenizer chain, and without some letters."""
    config = dict(_laguna())
    rules = config["model"]["merges"][: 2 * merges]
    kept = [m for m in rules if not set("".join(m)) & set(without)][:merges]
    letters = [letter for letter in byte_alphabet() if letter not in without]
    tokens = ["<|end|>", "<|im_start|>", "<|im_end|>", *letters, *("".join(pair) for pair in kept)]
    vocab = {token: i for i, token in enumerate(tokens)}
    config["model"] = {**config["model"], "vocab": vocab, "merges": kept, **model}
    config["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": chain}
    shape = config["added_tokens"][0]
    config["added_tokens"] = [{**shape, "id": i, "content": tokens[i]} for i in range(3)]
    return config


def smol_like() -> dict[str, Any]:
    """Digits one by one, then GPT-2's words; some control characters have no token, as in SmolLM2."""
    return small([DIGITS, BYTE_LEVEL], without="ĄĆĵ")


def gpt4_like() -> dict[str, Any]:
    """One split with a GPT-4 style expression."""
    return small([split(WORDS), BARE])


def write(folder: Path, config: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def reference(config: dict[str, Any]) -> tokenizers.Tokenizer:
    """The reference library with every control token taken away, from the vocabulary too."""
    controls = {token["content"] for token in config["added_tokens"]}
    vocab = {token: i for token, i in config["model"]["vocab"].items() if token not in controls}
    plain = {**config, "added_tokens": [], "model": {**config["model"], "vocab": vocab}}
    return tokenizers.Tokenizer.from_str(json.dumps(plain))
