"""Which text bytes mean: exact where they say so, judged where they do not, refused where it would be a
guess."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class Undecodable:
    """Why bytes are no text: `reason` is "binary" or "encoding"."""

    reason: str
    detail: str


def decode_text(raw: bytes) -> tuple[str, str, bool] | Undecodable:
    """Text, encoding's name (Python's), and whether a byte order mark was taken off."""
    for mark, name in _MARKS:
        if raw.startswith(mark):
            try:
                return raw[len(mark) :].decode(name), name, True
            except UnicodeDecodeError as error:
                return Undecodable("encoding", f"marked as {name}, but invalid at byte {error.start + len(mark)}")
    if b"\0" in raw:
        return Undecodable("binary", "holds a zero byte")
    try:
        return raw.decode("utf-8"), "utf-8", False
    except UnicodeDecodeError as error:
        return Undecodable("encoding", f"not UTF-8 at byte {error.start}, and no other encoding is certain")
