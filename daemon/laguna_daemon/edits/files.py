"""Bytes <-> lines of text, without loss: what is decoded here encodes to the same bytes again, or is refused."""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from laguna_context.reading import decode
from laguna_daemon.edits.lines import split_lines

# Longest first: the mark of UTF-32-LE starts with that of UTF-16-LE.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class NotText(Exception):
    """Bytes that cannot be edited as text; the message says why."""


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file's lines with their endings, and what it takes to write them back as they were."""

    lines: list[str]
    encoding: str = "utf-8"
    mark: bytes = b""

    def encode(self, lines: Sequence[str]) -> bytes:
        """Bytes of these lines in the file's encoding, behind its byte order mark.

        Raises UnicodeEncodeError where the encoding has no such character.
        """
        return self.mark + "".join(lines).encode(self.encoding)


def sha256(data: bytes) -> str:
    """The hex digest by which a file's state is known."""
    return hashlib.sha256(data).hexdigest()


def decode_as(raw: bytes, encoding: str) -> str:
    """The text of bytes whose encoding is known, without the byte order mark."""
    mark = next((mark for mark, name in _MARKS if name == encoding and raw.startswith(mark)), b"")
    return raw[len(mark) :].decode(encoding)


def load_text(raw: bytes) -> TextFile:
    """Decode a whole file. Raises NotText for binary content and for encodings that do not survive a round trip."""
    mark, encoding = next(((mark, name) for mark, name in _MARKS if raw.startswith(mark)), (b"", "utf-8"))
    body = raw[len(mark) :]
    if not mark and b"\0" in body:
        raise NotText("it is a binary file")
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError:
        if mark:
            raise NotText(f"it starts with the mark of {encoding} and is not {encoding}") from None
        text, encoding = _legacy(raw)
    return TextFile(split_lines(text), encoding, mark)


def _legacy(raw: bytes) -> tuple[str, str]:
    """Text and encoding of bytes that are not Unicode, as the model was shown them."""
    decoded = decode(raw)
    if not isinstance(decoded, tuple):
        raise NotText("its encoding is not known")
    text, encoding = decoded[0], decoded[1]
    try:
        same = text.encode(encoding) == raw
    except (UnicodeEncodeError, LookupError):
        same = False
    if not same:
        raise NotText(f"its bytes would not survive being read and written as {encoding}")
    return text, encoding
