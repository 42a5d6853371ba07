"""Merge rules of a `tokenizer.json` as ranks that give the same ids, or the reason why they cannot.

The reference merges only listed pairs; tiktoken merges any two neighbours whose concatenation is in its table. Both
agree exactly when, for every token t with rank k, the bytes of t merged by the rules before k leave a listed pair of t
(then both build t there), or t is absent from tiktoken's table (then neither builds it). That is decided here for each
token, by undoing merges from the newest and looking for one that crosses the pair's seam: the pair test described by
the `bpe` crate's authors (GitHub, 2024), with a limit added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any


class NotByteLevel(ValueError):
    """This model is not a byte-level BPE that ranks can express; the text says what stands in the way."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """`by_bytes`: token bytes -> rank. `ids`: rank -> id where ranks are not the ids themselves, else None.

    Ids from `size` on stand for single bytes that the vocabulary lacks (SmolLM2 has no 0x04): the reference drops such
    a byte, so a text that yields one has to be encoded by the reference.
    """

    by_bytes: dict[bytes, int]
    ids: list[int] | None
    size: int


def byte_alphabet() -> dict[str, int]:
    """The printable character that stands for each byte in a byte-level vocabulary (GPT-2's table)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {chr(byte): byte for byte in plain}
    others = (byte for byte in range(256) if chr(byte) not in table)
    return table | {chr(256 + index): byte for index, byte in enumerate(others)}


def token_bytes(token: str, alphabet: Mapping[str, int]) -> bytes:
    """The bytes a vocabulary entry stands for. KeyError where it is not spelled in the byte alphabet."""
    return bytes([alphabet[char] for char in token])


def build_ranks(model: Mapping[str, Any], without: frozenset[str]) -> Ranks:
    """Ranks of a BPE `model` section, leaving out the entries named in `without` (control tokens).

    NotByteLevel where the model uses a feature that ranks cannot express, or where both would differ.
    """
    _check_features(model)
    alphabet = byte_alphabet()
    vocabulary: Mapping[str, int] = model["vocab"]
    size = max(vocabulary.values()) + 1
    missing = [char for char in alphabet if char not in vocabulary]
    vocabulary = {**vocabulary, **{char: size + index for index, char in enumerate(missing)}}
    pairs = [tuple(m.split(" ", 1)) if isinstance(m, str) else tuple(m) for m in model["merges"]]
    reached, unreached = _reachable(pairs, alphabet, without)
    ordered = [*alphabet, *reached]
    if model.get("ignore_merges", False):
        ordered += _lookup_only(vocabulary, ordered, unreached, pairs, without, alphabet)
    ids = [vocabulary[token] for token in ordered]
    spelled = [token_bytes(token, alphabet) for token in ordered]
    merged = ids[len(alphabet) :]
    if all(a < b for a, b in pairwise(merged)):
        return Ranks(dict(zip(spelled, ids, strict=True)), None, size)
    return Ranks({text: rank for rank, text in enumerate(spelled)}, ids, size)


def _check_features(model: Mapping[str, Any]) -> None:
    if model.get("type", "BPE") != "BPE":
        raise NotByteLevel(f"the model is {model.get('type')}, not BPE")
    for feature in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"):
        if model.get(feature):
            raise NotByteLevel(f"the model uses {feature}")


def _reachable(
    pairs: Sequence[tuple[str, ...]], alphabet: Mapping[str, int], without: frozenset[str]
) -> tuple[list[str], list[str]]:
    """Products of the merge rules in order of rank: those that merging builds, and those it never does."""
    rank: dict[str, int] = dict.fromkeys(alphabet, -1)
    lookup: dict[tuple[str, str], int] = {}
    children: dict[str, tuple[str, str]] = {}
    reached: list[str] = []
    unreached: list[str] = []
    for left, right in pairs:
        product = left + right
        if reached and reached[-1] == product:  # another listed spelling of the same token, at the same rank
            lookup[left, right] = rank[product]
            continue
        if product in rank or product in without:
            raise NotByteLevel("a token is merged at two ranks, or a control token is merged")
        limit = len(reached)
        known = left in rank and right in rank
        if known and _seam_holds(left, right, limit, rank, lookup, children):
            rank[product] = limit
            lookup[left, right] = limit
            children[product] = (left, right)
            reached.append(product)
        else:
            unreached.append(product)
    return reached, unreached


def _seam_holds(
    left: str,
    right: str,
    limit: int,
    rank: Mapping[str, int],
    lookup: Mapping[tuple[str, str], int],
    children: Mapping[str, tuple[str, str]],
) -> bool:
    """Whether no rule below `limit` merges across the seam of two tokens while each of them is built."""
    while True:
        if lookup.get((left, right), limit) < limit:
            return False
        if rank[left] < 0 and rank[right] < 0:
            return True
        if rank[left] > rank[right]:
            limit = rank[left]
            left = children[left][1]
        else:  # at equal ranks the left one is merged first, so its rule still stands when the right one is undone
            limit = rank[right] + 1
            right = children[right][0]


def _lookup_only(
    vocabulary: Mapping[str, int],
    ordered: Sequence[str],
    unreached: Sequence[str],
    pairs: Sequence[tuple[str, ...]],
    without: frozenset[str],
    alphabet: Mapping[str, int],
) -> list[str]:
    """Tokens that the reference finds only when a whole piece equals them (`ignore_merges`).

    They may stand in tiktoken's table, which looks pieces up first too, if merging never leaves two parts of them.
    """
    known = set(ordered)
    rest = [t for t in vocabulary if t not in known and t not in without and all(c in alphabet for c in t)]
    rules = {pair: index for index, pair in enumerate(pairs) if pair[0] + pair[1] not in set(unreached)}
    for token in rest:
        if _parts(token, rules) <= 2:
            raise NotByteLevel(f"the token {token!r} is looked up but merged differently")
    return rest


def _parts(token: str, rules: Mapping[tuple[str, ...], int]) -> int:
    """How many parts merging leaves of a token."""
    parts = list(token)
    while len(parts) > 1:
        best = min(range(len(parts) - 1), key=lambda i: rules.get((parts[i], parts[i + 1]), len(rules) + len(parts)))
        if (parts[best], parts[best + 1]) not in rules:
            break
        parts[best : best + 2] = [parts[best] + parts[best + 1]]
    return len(parts)
