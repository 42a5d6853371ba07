"""Columns of a line under the three position encodings, and lines as the protocol counts them.

Source: Language Server Protocol 3.18, "Text Documents" and "Position". A line ends at `\\n`, `\\r\\n`
or `\\r` and at nothing else; a column counts UTF-8 bytes, UTF-16 units or code points from 0.
"""

import re
from enum import StrEnum

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Encoding(StrEnum):
    """What one unit of `Position.character` counts."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


def split_lines(text: str) -> list[str]:
    """Lines with their endings; the last one never has an ending, and is "" after a final one."""
    if "\r" not in text:
        lines = [line + "\n" for line in text.split("\n")]
        lines[-1] = lines[-1][:-1]
        return lines
    lines = _LINE.findall(text)
    if not lines or lines[-1][-1] in "\r\n":
        lines.append("")
    return lines


def content_length(line: str) -> int:
    """Length of `line` in code points without its ending."""
    if line.endswith("\r\n"):
        return len(line) - 2
    return len(line) - 1 if line.endswith(("\n", "\r")) else len(line)


def to_index(line: str, column: int, encoding: Encoding) -> int:
    """Code point index of `column` in `line`, clamped to 0 .. length without the line ending.

    A column inside a character (the middle of a surrogate pair or of a UTF-8 sequence) means the
    start of that character.
    """
    length = content_length(line)
    if column <= 0:
        return 0
    if encoding is Encoding.UTF32 or line.isascii():
        return min(column, length)
    if encoding is Encoding.UTF8:
        raw = line[:length].encode("utf-8", "surrogatepass")
        if column >= len(raw):
            return length
        while raw[column] & 0xC0 == 0x80:
            column -= 1
        return len(raw[:column].decode("utf-8", "surrogatepass"))
    raw = line[:length].encode("utf-16-le", "surrogatepass")
    if 2 * column >= len(raw):
        return length
    if raw[2 * column + 1] & 0xFC == 0xDC and raw[2 * column - 1] & 0xFC == 0xD8:
        column -= 1
    return len(raw[: 2 * column].decode("utf-16-le", "surrogatepass"))


def to_column(line: str, index: int, encoding: Encoding) -> int:
    """Column, in units of `encoding`, of the code point `index` of `line` (clamped)."""
    head = line[: min(max(index, 0), content_length(line))]
    if encoding is Encoding.UTF32 or head.isascii():
        return len(head)
    if encoding is Encoding.UTF8:
        return len(head.encode("utf-8", "surrogatepass"))
    return len(head.encode("utf-16-le", "surrogatepass")) // 2


def has_surrogates(text: str) -> bool:
    """Whether `text` holds half of a pair: JSON can carry one, UTF-8 and the tokenizer cannot."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def join_surrogates(text: str) -> str:
    """`text` with every adjacent high and low half made one character; lone halves stay."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def replace_surrogates(text: str) -> str:
    """`text` with U+FFFD for each lone half (one UTF-16 unit as before, so columns stay)."""
    return _SURROGATE.sub("\ufffd", text)
