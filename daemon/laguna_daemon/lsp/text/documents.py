"""The open documents of one client: exact text, kept line by line under incremental changes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from laguna_daemon.lsp.text.positions import (
    Encoding,
    has_surrogates,
    join_surrogates,
    replace_surrogates,
    split_lines,
    to_column,
    to_index,
)


class Place(NamedTuple):
    """A point in a document: line from 0 and column in units of the client's encoding."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Change:
    """One change event: `text` replaces start .. end; without a range, the whole document."""

    text: str
    start: Place | None = None
    end: Place | None = None


@dataclass(slots=True)
class Document:
    """One open document. `lines` keep their endings; the last line never has one."""

    uri: str
    language: str
    version: int
    encoding: Encoding
    lines: list[str] = field(default_factory=lambda: [""])
    _odd: bool = False  # a surrogate half has been seen since the last full text

    @property
    def text(self) -> str:
        """The whole text, valid Unicode (a lone surrogate half reads as U+FFFD)."""
        text = "".join(self.lines)
        return replace_surrogates(text) if self._odd else text

    def apply(self, changes: Iterable[Change], version: int) -> None:
        """Apply one notification's changes, each on the result of the one before."""
        for change in changes:
            if change.start is None or change.end is None:
                self.replace(change.text)
            else:
                self._splice(change.start, change.end, change.text)
        self.version = version

    def replace(self, text: str) -> None:
        """Take `text` as the whole document."""
        self._odd = has_surrogates(text)
        self.lines = split_lines(join_surrogates(text) if self._odd else text)

    def locate(self, place: Place) -> tuple[int, int]:
        """(line, code point index in it) of `place`, clamped into the document."""
        if place.line < 0:
            return 0, 0
        if place.line >= len(self.lines):
            return len(self.lines) - 1, len(self.lines[-1])
        return place.line, to_index(self.lines[place.line], place.column, self.encoding)

    def place(self, line: int, index: int) -> Place:
        """The position of the code point `index` of `line`, in the client's encoding."""
        return Place(line, to_column(self.lines[line], index, self.encoding))

    def valid(self, text: str) -> str:
        """A piece of the text as valid Unicode."""
        return replace_surrogates(text) if self._odd else text

    def _splice(self, start: Place, end: Place, text: str) -> None:
        (first, head), (last, tail) = sorted((self.locate(start), self.locate(end)))
        piece = self.lines[first][:head] + text + self.lines[last][tail:]
        # A "\r" and a "\n" that come to stand side by side become one line ending.
        if first > 0 and piece[:1] == "\n" and self.lines[first - 1].endswith("\r"):
            first -= 1
            piece = self.lines[first] + piece
        if piece.endswith("\r") and last + 1 < len(self.lines) and self.lines[last + 1][0:1] == "\n":
            last += 1
            piece += self.lines[last]
        if has_surrogates(piece):
            self._odd = True
            piece = join_surrogates(piece)
        lines = split_lines(piece)
        if last + 1 < len(self.lines) and not lines[-1]:
            lines.pop()  # the piece ended with a line ending, and the next line stands behind it
        self.lines[first : last + 1] = lines


class Documents:
    """The documents one client has open, by the URI as the client spells it."""

    def __init__(self, encoding: Encoding = Encoding.UTF16) -> None:
        self.encoding = encoding
        self._open: dict[str, Document] = {}

    def open(self, uri: str, language: str, version: int, text: str) -> Document:
        """Take a document that the client owns from now on; an open one is replaced."""
        document = Document(uri, language, version, self.encoding)
        document.replace(text)
        self._open[uri] = document
        return document

    def get(self, uri: str) -> Document | None:
        """The open document, or None."""
        return self._open.get(uri)

    def close(self, uri: str) -> Document | None:
        """Forget a document; returns it if it was open."""
        return self._open.pop(uri, None)

    def __iter__(self) -> Iterator[Document]:
        return iter(tuple(self._open.values()))

    def __len__(self) -> int:
        return len(self._open)
