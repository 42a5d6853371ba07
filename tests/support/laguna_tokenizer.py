"""A tokenizer and chat template of Laguna's shape, generated: the published ones cannot be shipped here.

Same size (100,352 ids), same two-split pre-tokenizer, same control ids, same shape of chat template. The merge rules
are made from word parts and a fixed random sequence, so many of them are as odd as real ones are.
"""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

SIZE = 100_352
CONTROLS = {
    2: "〈|EOS|〉",
    9: "〈|PAD|〉",
    12: "〈|MASK|〉",
    18: "<think>",
    19: "</think>",
    23: "<assistant>",
    24: "</assistant>",
    25: "<tool_call>",
    26: "</tool_call>",
}
_FIRST_BYTE_ID = 70

NEWLINES = r"(?:\r?\n)+(?!\r?\n)"
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEMPLATE = (
    "{{ bos_token }}"
    "{% for m in messages %}"
    "{% if m.role == 'system' %}<system>{{ m.content }}</system>\n"
    "{% elif m.role == 'user' %}<user>{{ m.content }}</user>\n"
    "{% else %}<assistant>{% if enable_thinking and m.reasoning %}<think>{{ m.reasoning }}{% endif %}</think>"
    "{{ m.content }}</assistant>\n{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% if enable_thinking %}<think>{% else %}</think>{% endif %}{% endif %}"
)
_SEEDS = [
    "the",
    "return",
    "self",
    "import",
    "from",
    "def",
    "class",
    "function",
    "const",
    "let",
    "var",
    "public",
    "static",
    "void",
    "string",
    "number",
    "None",
    "True",
    "False",
    "for",
    "while",
    "if",
    "else",
    "elif",
    "try",
    "except",
    "raise",
    "with",
    "open",
    "read",
    "write",
    "path",
    "file",
    "test",
    "assert",
    "equal",
    "list",
    "dict",
    "tuple",
    "int",
    "float",
    "bool",
    "value",
    "key",
    "name",
    "type",
    "data",
    "error",
    "result",
    "request",
    "response",
    "document",
    "change",
    "repository",
    "token",
    "prefix",
    "cache",
    "ing",
    "tion",
    "ment",
    "able",
    "er",
    "est",
    "ly",
    "un",
    "re",
    "pre",
    "dis",
    "con",
    "com",
    "pro",
    "ent",
    "ance",
    "ity",
    "ous",
    "ive",
    "al",
    "ic",
    "ize",
    "ter",
    "der",
    "par",
    "str",
    "int",
    "get",
    "set",
    "add",
    "new",
    "old",
    "pos",
    "len",
    "max",
    "min",
    "sum",
    "abs",
    "line",
    "text",
    "code",
    "byte",
    "word",
    "user",
    "model",
    "server",
    "client",
    "async",
    "await",
    "yield",
    "lambda",
]
_RUNS = (
    "    ",
    "        ",
    "\n\n",
    "\t\t",
    "==",
    "//",
    "--",
    "->",
    "=>",
    "::",
    "();",
    "):",
    '",',
    "</",
    '="',
    "/>",
    "...",
    "((",
)
_SCRIPTS = "日本語中文字符的一是在不了有和人这한국어텍스트éèüößñçабвгдежз😋🎉→—’“”"


def byte_alphabet() -> list[str]:
    """The letter that stands for each byte, in byte order."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    out = [""] * 256
    for byte in plain:
        out[byte] = chr(byte)
    rest = [byte for byte in range(256) if not out[byte]]
    for index, byte in enumerate(rest):
        out[byte] = chr(256 + index)
    return out


class _Trainer:
    """Merge rules in order. New ones join neighbours in words that the rules so far have cut, as training does, so
    that every rule can be reached."""

    def __init__(self, alphabet: list[str]) -> None:
        self.alphabet = alphabet
        self.rank: dict[tuple[str, str], int] = {}
        self.products = set(alphabet)

    def spell(self, text: str) -> list[str]:
        return [self.alphabet[byte] for byte in text.encode()]

    def add(self, left: str, right: str) -> None:
        if left + right not in self.products:
            self.products.add(left + right)
            self.rank[left, right] = len(self.rank)

    def cut(self, parts: list[str]) -> list[str]:
        never = len(self.rank)
        while len(parts) > 1:
            ranks = [self.rank.get(pair, never) for pair in pairwise(parts)]
            best = min(ranks)
            if best == never:
                break
            at = ranks.index(best)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return parts

    def learn(self, text: str) -> None:
        parts = self.cut(self.spell(text))
        while len(parts) > 1:
            self.add(parts[0], parts[1])
            parts = self.cut(self.spell(text))


def _merges(alphabet: list[str], count: int) -> list[tuple[str, str]]:
    trainer = _Trainer(alphabet)
    for text in [*_SCRIPTS, *_RUNS, *_SEEDS, *(" " + s for s in _SEEDS), *(s.capitalize() for s in _SEEDS)]:
        trainer.learn(text)
    chance = random.Random(20_261_130)
    letters = "etaoinshrdlucmfwypvbgkjqxzETAOINSHRDLUCMFW"
    while len(trainer.rank) < count:
        stems = chance.choices(_SEEDS, k=3)
        noise = "".join(chance.choices(letters, k=12))
        parts = trainer.cut(trainer.spell(" " + noise[:4] + stems[0] + noise[4:8] + stems[1] + noise[8:] + stems[2]))
        for left, right in zip(parts[::2], parts[1::2], strict=False):
            if len(left) + len(right) <= 16:
                trainer.add(left, right)
    return list(trainer.rank)[:count]


def tokenizer_config() -> dict[str, Any]:
    """The `tokenizer.json` as an object."""
    alphabet = byte_alphabet()
    merges = _merges(alphabet, SIZE - _FIRST_BYTE_ID - 256)
    controls = {i: CONTROLS.get(i, f"〈|RESERVED_{i}|〉") for i in range(_FIRST_BYTE_ID)}
    tokens = [*controls.values(), *alphabet, *(a + b for a, b in merges)]
    added = [
        {
            "id": i,
            "content": text,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for i, text in controls.items()
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                _split(NEWLINES, "MergedWithNext"),
                _split(WORDS, "Isolated"),
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
            ],
        },
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: index for index, token in enumerate(tokens)},
            "merges": [list(pair) for pair in merges],
        },
    }


def _split(pattern: str, behavior: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": False}


def write_model(folder: Path) -> Path:
    """Tokenizer and template files of a model folder, without weights. Returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_config()), encoding="utf-8")
    config = {"chat_template": TEMPLATE, "bos_token": CONTROLS[2], "eos_token": CONTROLS[2]}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder
