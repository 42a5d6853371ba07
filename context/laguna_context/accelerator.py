"""An optional faster encoder (extra `fast`): the library fastokens, https://github.com/crusoecloud/fastokens."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

NAME = "fastokens"


def installed() -> str | None:
    """The version of the library, or None if it is not there."""
    try:
        return version(NAME)
    except PackageNotFoundError:
        return None


class Accelerator:
    """Encodes ordinary text under the config of a `tokenizer.json`. ImportError without the library; ValueError for a
    config that it cannot take."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        library = import_module(NAME)
        # Without added tokens none is looked for in text; the vocabulary keeps their spellings, as it wants all of it.
        model = {"type": "BPE", **config["model"]}
        plain = {**config, "model": model, "added_tokens": [], "post_processor": None}
        self._library = library.Tokenizer.from_json_str(json.dumps(plain))

    def encode(self, text: str) -> NDArray[np.uint32]:
        """Ids of `text`, shape (n,)."""
        return self.encode_many([text])[0]

    def encode_many(self, texts: Sequence[str]) -> list[NDArray[np.uint32]]:
        """Ids of each text."""
        flat, bounds = self._library.encode_batch_flat(list(texts))
        ids = np.frombuffer(flat, dtype="<u4")
        places = np.frombuffer(bounds, dtype="<u8").tolist()
        return [ids[start:end] for start, end in pairwise(places)]
