"""Exact token ids of ordinary text, from a model's own `tokenizer.json`.

tiktoken is the fast path (Apache-2.0 library, used as published); the `tokenizers` library is the reference. The fast
path is used only if its tables are proven equal (`merges`), its cuts are known (`splitting`) and both agree on the
self-check corpus (`selfcheck`); any text outside what was proven goes to the reference, whole. Where a faster library
is installed (`accelerator`) and passes the same check, it encodes, and tiktoken stands behind it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import tiktoken
import tokenizers
from numpy.typing import NDArray

from laguna_context import merges, selfcheck, splitting
from laguna_context.accelerator import NAME, Accelerator, installed
from laguna_context.errors import ContextError

Ids = NDArray[np.uint32]

# Part of every fingerprint: raise it when the meaning of encode() changes.
_VERSION = 1

# fancy-regex keeps one frame per character of a white-space run and gives up at a million of them (seen: a run of
# 10^6 blanks aborts, 10^5 passes). Twenty times less goes to the reference, which walks the run without a stack.
_LONG_BLANK = re.compile(r"(?<!\s)\s{50000}")


class Tokenizer(Protocol):
    """Text to ids and back. All ids are uint32; control ids never come out of `encode`."""

    fingerprint: str
    vocabulary: int
    kind: str
    controls: Sequence[str]

    def encode(self, text: str) -> Ids:
        """Ids of `text` as ordinary text, shape (n,). Lone surrogates become U+FFFD."""

    def encode_many(self, texts: Sequence[str]) -> list[Ids]:
        """`encode` of each text, in parallel."""

    def encode_controlled(self, text: str) -> Ids:
        """Ids of text of our own making (a chat template) in which control strings are control ids."""

    def decode(self, ids: Iterable[int]) -> bytes:
        """The bytes of these ids; control ids give their spelling."""

    def special(self, text: str) -> int | None:
        """The id of a control string, or None."""


class BrokenTokenizer(ContextError):
    """The model folder has no usable tokenizer."""


class _Base:
    """What both kinds share: control tokens, decoding, the two reference tokenizers."""

    kind = "reference"

    def __init__(self, config: Mapping[str, Any], fingerprint: str) -> None:
        self.fingerprint = fingerprint
        self._config = config
        self._controls: dict[str, int] = {t["content"]: t["id"] for t in config.get("added_tokens", [])}
        self.controls: Sequence[str] = tuple(self._controls)
        vocabulary = _vocabulary(config)
        self.vocabulary = 1 + max([*vocabulary.values(), *self._controls.values()])
        self._local = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._plain: tokenizers.Tokenizer | None = None
        self._full: tokenizers.Tokenizer | None = None
        self._bytes: list[bytes] | None = None

    def special(self, text: str) -> int | None:
        return self._controls.get(text)

    def encode(self, text: str) -> Ids:
        return self._reference(_valid(text))

    def encode_many(self, texts: Sequence[str]) -> list[Ids]:
        # tiktoken and the reference both release the interpreter lock while they encode. tiktoken keeps its regular
        # expression's memory per thread: new threads for each call made a large tree cost half as much again.
        with self._local:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(min(8, os.cpu_count() or 1), thread_name_prefix="laguna-encode")
        return list(self._pool.map(self.encode, texts))

    def encode_controlled(self, text: str) -> Ids:
        with self._local:
            if self._full is None:
                self._full = tokenizers.Tokenizer.from_str(json.dumps({**self._config, "post_processor": None}))
        return np.array(self._full.encode(_valid(text), add_special_tokens=False).ids, dtype=np.uint32)

    def decode(self, ids: Iterable[int]) -> bytes:
        if self._bytes is None:
            self._bytes = self._byte_table()
        table = self._bytes
        return b"".join([table[index] for index in np.asarray(ids, dtype=np.uint32).tolist()])

    def _reference(self, text: str) -> Ids:
        with self._local:
            if self._plain is None:
                self._plain = tokenizers.Tokenizer.from_str(json.dumps(plain_config(self._config)))
        return np.array(self._plain.encode(text, add_special_tokens=False).ids, dtype=np.uint32)

    def _byte_table(self) -> list[bytes]:
        table = [b""] * self.vocabulary
        alphabet = merges.byte_alphabet()
        for token, index in _vocabulary(self._config).items():
            try:
                table[index] = merges.token_bytes(token, alphabet)
            except KeyError:  # not byte-level: its spelling is the best there is
                table[index] = token.encode("utf-8", "replace")
        for token, index in self._controls.items():
            table[index] = token.encode("utf-8", "replace")
        return table


class ReferenceTokenizer(_Base):
    """The `tokenizers` library itself, with added tokens disabled."""


class TiktokenTokenizer(_Base):
    """The fast path. Texts outside what was proven equal go to the reference."""

    kind = "tiktoken"

    def __init__(self, config: Mapping[str, Any], fingerprint: str, ranks: merges.Ranks, pattern: str) -> None:
        super().__init__(config, fingerprint)
        self._size = ranks.size
        self._ids = None if ranks.ids is None else np.array(ranks.ids, dtype=np.uint32)
        self._encoding = tiktoken.Encoding(
            fingerprint[:16], pat_str=pattern, mergeable_ranks=ranks.by_bytes, special_tokens={}
        )
        self._accelerator: Accelerator | None = None

    def accelerate(self, accelerator: Accelerator) -> None:
        """From here on let this one encode whatever it takes. It must have been proven equal."""
        self._accelerator = accelerator
        self.kind = NAME

    def encode(self, text: str) -> Ids:
        text = _valid(text)
        if len(text) >= 50_000 and _LONG_BLANK.search(text):
            return self._reference(text)
        if self._accelerator is not None:
            with suppress(Exception):  # its limits are not documented; those of tiktoken are known
                return self._accelerator.encode_many([text])[0]
        return self._plainly(text)

    def encode_many(self, texts: Sequence[str]) -> list[Ids]:
        if self._accelerator is None or any(len(text) >= 50_000 for text in texts):
            return super().encode_many(texts)
        try:
            return self._accelerator.encode_many([_valid(text) for text in texts])
        except Exception:
            return super().encode_many(texts)

    def _plainly(self, text: str) -> Ids:
        ids = self._encoding.encode_to_numpy(text, disallowed_special=())
        if self._ids is not None:
            ids = self._ids[ids]
        if ids.size and ids.max() >= self._size:  # a byte that the vocabulary lacks
            return self._reference(text)
        return ids


def load_tokenizer(folder: Path, *, cache: Path | None = None) -> Tokenizer:
    """The tokenizer of a model folder: the fast path where it is proven equal, else the reference.

    `cache`: a folder where the verdict of the self-check is kept, so that later starts need not repeat it.
    BrokenTokenizer if `tokenizer.json` is missing or no tokenizer.
    """
    path = folder / "tokenizer.json"
    try:
        raw = path.read_bytes()
        config = json.loads(raw)
        fingerprint = hashlib.sha256(b"tokens %d\0" % _VERSION + raw).hexdigest()
        reference = ReferenceTokenizer(config, fingerprint)
    except OSError as error:
        raise BrokenTokenizer(f"{path} cannot be read ({error.strerror}).", "Install the model again.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BrokenTokenizer(f"{path} is not a tokenizer.", "Install the model again.") from error
    fast = _fast(config, fingerprint)
    if fast is None:
        return reference
    if not _proven(fast.encode, reference, cache, f"tiktoken {version('tiktoken')}"):
        return reference
    accelerator = _accelerator(config)
    if accelerator is not None and _proven(accelerator.encode, reference, cache, f"{NAME} {installed()}"):
        fast.accelerate(accelerator)
    return fast


def _proven(encode: selfcheck.Encode, reference: Tokenizer, cache: Path | None, library: str) -> bool:
    verdict = selfcheck.Verdict(cache, reference.fingerprint, library)
    agreed = verdict.known
    if agreed is None:
        agreed = verdict.known = selfcheck.agree(encode, reference.encode, reference.controls)
    return agreed


def _accelerator(config: Mapping[str, Any]) -> Accelerator | None:
    if installed() is None:
        return None
    try:
        return Accelerator(config)
    except Exception:  # whatever it has against this tokenizer, there is tiktoken
        return None


def _fast(config: Mapping[str, Any], fingerprint: str) -> TiktokenTokenizer | None:
    if config.get("normalizer") is not None:
        return None
    pattern = splitting.compose(config.get("pre_tokenizer"))
    if pattern is None:
        return None
    controls = frozenset(token["content"] for token in config.get("added_tokens", []))
    try:
        ranks = merges.build_ranks(config["model"], controls)
        return TiktokenTokenizer(config, fingerprint, ranks, pattern)
    except (merges.NotByteLevel, ValueError, KeyError):
        return None


def plain_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The same `tokenizer.json` without any control token: what hostile text is measured against."""
    controls = {token["content"] for token in config.get("added_tokens", [])}
    model = dict(config["model"])
    if isinstance(model.get("vocab"), dict):
        model["vocab"] = {token: index for token, index in model["vocab"].items() if token not in controls}
    return {**config, "model": model, "added_tokens": [], "post_processor": None}


def _vocabulary(config: Mapping[str, Any]) -> dict[str, int]:
    vocabulary = config["model"]["vocab"]
    if isinstance(vocabulary, dict):
        return vocabulary
    return {entry[0]: index for index, entry in enumerate(vocabulary)}  # Unigram lists [token, score]


def _valid(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
