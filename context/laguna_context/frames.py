"""How files, changes and tasks are written in a prompt. Change a frame and `FRAME_VERSION` goes up with it.

Every frame starts with `<` and ends with exactly one newline behind a character that is not white space: between two
such frames the ids of the parts are the ids of the whole.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Literal

FRAME_VERSION = 1

Kind = Literal["whole", "diff", "deleted", "renamed", "unsaved"]

# The document that lists what is not shown in full. No file can have this name.
LISTING_PATH = "./"

# What would break an attribute or a line, and halves of surrogates that stand for undecodable bytes of a name.
_UNSAFE = re.compile(r'[&<>"\x00-\x20\x7f-\x9f\u2028\u2029\ud800-\udfff]')


def escape(text: str) -> str:
    """`text` as an attribute value on one line; reversed by `html.unescape` except for undecodable bytes."""
    return _UNSAFE.sub(lambda m: " " if m.group() == " " else f"&#x{ord(m.group()):X};", text)


def text_hash(text: str) -> str:
    """sha256 of a text, 64 hex digits: the version of a file as the model sees it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def short_id(text: str, digest: str, tag: str) -> str:
    """First 8 hex digits of the hash, more if `</tag id>` stands in the text, so that a frame cannot be left."""
    for length in range(8, len(digest) + 1):
        if f"</{tag} {digest[:length]}>" not in text:
            return digest[:length]
    raise ValueError("a text cannot contain its own hash")


@dataclass(frozen=True, slots=True)
class Frame:
    """A rendered piece of a prompt."""

    text: str
    id: str


def document(path: str, text: str, digest: str | None = None) -> Frame:
    """The frame of one file. `digest` is `text_hash(text)` where it is known already."""
    name = short_id(text, digest or text_hash(text), "document")
    return Frame(f'<document path="{escape(path)}" id="{name}">\n{text}\n</document {name}>\n', name)


def change(
    number: int, path: str, kind: Kind, text: str = "", *, base: str = "", diff: bool = False, to: str = ""
) -> Frame:
    """One overlay entry. `base`: the short id of what it replaces, empty for a file that is new.

    `diff` marks an unsaved buffer that is written as a diff against `base`; `to` is the new name of a renamed file.
    """
    name = short_id(text, text_hash(text), "change")
    attributes = f' n="{number}" path="{escape(path)}" kind="{kind}"'
    if to:
        attributes += f' to="{escape(to)}"'
    if base:
        attributes += f' base="{base}"'
    if diff and kind == "unsaved":
        attributes += ' form="diff"'
    body = f"{text}\n" if text else ""
    return Frame(f'<change{attributes} id="{name}">\n{body}</change {name}>\n', name)


def extra(name: str, text: str) -> Frame:
    """Something retrieved or piped in for one task."""
    mark = short_id(text, text_hash(text), "extra")
    return Frame(f'<extra name="{escape(name)}" id="{mark}">\n{text}\n</extra {mark}>\n', mark)


def task(question: str) -> str:
    """The task as text; the template's tail starts with its closing line."""
    question = question.strip()
    return f"<task>\n{question}\n" if question else "<task>\n"
