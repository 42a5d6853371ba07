"""What a reader of a prompt knows of each file: snapshot and overlay read back from the text alone."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

_OPENING = re.compile(r"^<(?P<tag>document|change) (?P<attributes>[^\n]*)>\n", re.MULTILINE)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
LISTING = "./"


@dataclass
class View:
    """`files`: path -> text; `kinds`: of the changes, in order; `versions`: the text each frame id stood for."""

    files: dict[str, str] = field(default_factory=dict)
    kinds: list[tuple[str, str]] = field(default_factory=list)
    listing: str = ""


def read(text: str) -> View:
    """Read every frame of a rendered prompt in order."""
    view = View()
    ids: dict[str, str] = {}
    place = 0
    while found := _OPENING.search(text, place):
        attributes = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(found["attributes"])}
        closing = f"</{found['tag']} {attributes['id']}>\n"
        end = text.index(closing, found.end())
        body = text[found.end() : end].removesuffix("\n")
        place = end + len(closing)
        _take(view, ids, found["tag"], attributes, body)
    view.listing = view.files.pop(LISTING, "")
    return view


def _take(view: View, ids: dict[str, str], tag: str, attributes: dict[str, str], body: str) -> None:
    path = attributes["path"]
    kind = attributes.get("kind", "document")
    if tag == "change":
        view.kinds.append((kind, path))
        if "base" in attributes:
            assert ids[path] == attributes["base"], "an entry replaces the version seen last"
    if kind == "deleted":
        del view.files[path]
    elif kind == "renamed":
        view.files[attributes["to"]] = view.files.pop(path)
        ids[attributes["to"]] = ids[path]
    elif kind == "diff" or attributes.get("form") == "diff":
        view.files[path] = patch(view.files[path], body)
    else:
        view.files[path] = body
    ids[path] = attributes["id"]


def patch(old: str, difference: str) -> str:
    """Apply unified hunks."""
    lines = re.findall(r"[^\n]*\n|[^\n]+$", old)
    out: list[str] = []
    at = 0
    left = right = 0
    last = ""
    for line in difference.split("\n"):
        if not left and not right and (hunk := _HUNK.fullmatch(line)):
            start, left, right = int(hunk[1]), int(hunk[2] or 1), int(hunk[4] or 1)
            begin = start - 1 if left else start
            out += lines[at:begin]
            at = begin
        elif line.startswith("\\"):
            if last != "-":
                out[-1] = out[-1].removesuffix("\n")
        else:
            last, content = line[:1], line[1:] + "\n"
            assert last in " -+", line
            if last != "+":
                left -= 1
                assert lines[at].removesuffix("\n") + "\n" == content
                at += 1
            if last != "-":
                right -= 1
                out.append(content)
    return "".join([*out, *lines[at:]])
