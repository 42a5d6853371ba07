"""Does the fast tokenizer give the reference's ids? Asked once per tokenizer and library version, on texts that differ
in every way cuts and merges can."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Encode = Callable[[str], NDArray[np.uint32]]

_SAMPLES = (
    "def f(x):\n\treturn {'a': x**2, \"b\": [1, 22, 333, 4444]}  # it's, I'LL, we've\r\n",
    "\n\n\n  if (a&&b)||!c { return; }\n\n\t\t\r\n \r\n\r\r\n x\r y \n",
    "   leading, trailing   \n      \n\t \t\nend of line  \n  \n",
    "日本語のテキスト、中文文本。한국어 텍스트 العربية עברית ไทย हिन्दी\n",
    "emoji 😋😋👩‍👩‍👧‍👦🏳️‍🌈 e\u0301 ﬁ ǅ Ⅷ ² ½ ٣ ४ 五 \u00a0 \u2003 \u2028 \u2029 \u0085 \u3000 \ufeff",
    "0123456789 1,234.5e-6 0xDEADBEEF v1.2.3 2026-11-30T09:00:00Z x1y22z333",
    'https://example.org/a/b?c=d&e=%20#f <a href=\'x\'>y</a> </document 01234567>\n<document path="a" id="b">\n',
    "CamelCaseWord snake_case_word SCREAMING_CASE kebab-case don't DON'T '' 's 'S \"'re\"",
    "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x10\x13\x16\x1b\x1c\x1d\x1e\x1f\x7f\x80\x9f",
    "=" * 300 + "-" * 77 + "a" * 200 + " " * 130 + "x" + "\n" * 90 + "\t" * 65 + "ab" * 300,
    "!function(e,t){var n={};for(var r=0;r<e.length;r++)n[e[r]]=t[r]||null;return n}(window,[]);" * 40,
)
_BLANKS = (" ", "\n", "\r", "\r\n", "\t", "  ", "\u3000", "\x0b", "\u2028", "")
_WORDS = ("a", "1", "-", "é", "😋", "/", "'s", "_")


def samples(controls: Sequence[str]) -> Iterator[str]:
    """The corpus: code, prose of many scripts, control strings, every mix of blanks, code points of every class."""
    yield from _SAMPLES
    yield " ".join(controls) + "".join(controls) + "\n".join(controls)
    for first in _BLANKS:
        yield "".join(
            f"{left}{first}{second}{third}{right}"
            for second in _BLANKS
            for third in _BLANKS
            for left in _WORDS[:4]
            for right in _WORDS[2:5]
        )
    points = list(_points())
    for start in range(0, len(points), 4096):
        yield "".join(f"a{chr(p)}b {chr(p)}1" for p in points[start : start + 4096])


def _points() -> Iterator[int]:
    """Code points whose class both regular-expression engines must agree on: every one of plane 0, every fourth of
    plane 1, every sixteenth of the long uniform blocks (ideographs, Hangul syllables, private use)."""
    uniform = (range(0x3400, 0xA000), range(0xAC00, 0xD7A4), range(0xE000, 0xF900), range(0x20000, 0x34000))
    for point in [*range(0xD800), *range(0xE000, 0x34000), *range(0xE0000, 0xE0200, 16), 0xF0000, 0x10FFFD]:
        step = 16 if any(point in block for block in uniform) else 4 if point > 0xFFFF else 1
        if point % step == 0:
            yield point


def agree(fast: Encode, reference: Encode, controls: Sequence[str]) -> bool:
    """Whether both give the same ids on the whole corpus."""
    try:
        return all(np.array_equal(fast(text), reference(text)) for text in samples(controls))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic inside tiktoken is no Exception; either way it is not to be trusted
        return False


class Verdict:
    """The remembered outcome for one tokenizer and fast library ("name version") against the installed reference."""

    def __init__(self, folder: Path | None, fingerprint: str, library: str) -> None:
        self._path = None if folder is None else folder / "tokenizers.json"
        self._key = f"{fingerprint} {library} {version('tokenizers')}"

    def _table(self) -> dict[str, bool]:
        if self._path is None:
            return {}
        try:
            table = json.loads(self._path.read_text())
        except (OSError, ValueError):
            return {}
        return table if isinstance(table, dict) else {}

    @property
    def known(self) -> bool | None:
        """True or False as found before, None if not checked yet."""
        return self._table().get(self._key)

    @known.setter
    def known(self, value: bool) -> None:
        if self._path is None:
            return
        beside = self._path.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):  # no cache to be had: the next start checks again
            try:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                beside.write_text(json.dumps({**self._table(), self._key: value}))
                beside.replace(self._path)
            except OSError:
                beside.unlink(missing_ok=True)
                raise
