"""A change set as a patch that ``git apply`` takes, bytes for bytes.

Patches are made of the files' bytes, split at line feeds alone as git does, so that encodings, carriage returns and
a missing final newline survive. Files with NUL bytes (UTF-16, binary) become ``GIT binary patch`` literals; their
format is that of git's ``diff.c``: zlib, then lines of up to 52 bytes in base 85 behind a length letter.
"""

from __future__ import annotations

import base64
import hashlib
import os
import zlib

from laguna_daemon.edits.changes import ChangeSet, FileChange, FileState
from laguna_daemon.edits.diff import changes_between, grouped, hunk

_LINE_BYTES = 52
_NO_NEWLINE = b"\n\\ No newline at end of file\n"


def to_patch(changes: ChangeSet, *, object_format: str = "sha1") -> bytes:
    """The whole set as one patch. ``object_format`` is the repository's hash (``worktree.object_format``).

    Paths in it are relative to the change set's root: apply it there.
    """
    return b"".join(_file_patch(change, object_format) for change in changes.changes)


def _file_patch(change: FileChange, object_format: str) -> bytes:
    before, after = change.before, change.after
    old_path, new_path = change.source or change.path, change.path
    lines = [f"diff --git {_quoted('a/' + old_path)} {_quoted('b/' + new_path)}"]
    lines += _mode_lines(before, after)
    if change.source is not None:
        lines += [f"rename from {_quoted(old_path)}", f"rename to {_quoted(new_path)}"]
    head = _encoded(lines)
    old, new = before.data if before else b"", after.data if after else b""
    if old == new:
        return head
    if b"\0" in old or b"\0" in new:
        return head + _binary(before, after, object_format)
    old_name = _quoted("a/" + old_path) if before else "/dev/null"
    new_name = _quoted("b/" + new_path) if after else "/dev/null"
    # A name with a space is closed by a tab, as git does it, or the rest would be read as a time stamp.
    names = [f"--- {old_name}" + _tab(old_name), f"+++ {new_name}" + _tab(new_name)]
    return head + _encoded(names) + _hunks(old, new)


def _encoded(lines: list[str]) -> bytes:
    return b"".join(os.fsencode(line) + b"\n" for line in lines)


def _tab(name: str) -> str:
    return "\t" if " " in name and not name.startswith('"') else ""


def _mode_lines(before: FileState | None, after: FileState | None) -> list[str]:
    if before is None and after is not None:
        return [f"new file mode {_git_mode(after)}"]
    if after is None and before is not None:
        return [f"deleted file mode {_git_mode(before)}"]
    if before is not None and after is not None and before.executable != after.executable:
        return [f"old mode {_git_mode(before)}", f"new mode {_git_mode(after)}"]
    return []


def _git_mode(state: FileState) -> str:
    return "100755" if state.executable else "100644"


def _hunks(old: bytes, new: bytes) -> bytes:
    old_lines, new_lines = _split(old), _split(new)
    parts: list[bytes] = []
    for group in grouped(changes_between(old_lines, new_lines)):
        header, body = hunk(old_lines, new_lines, group)
        parts.append(header.encode() + b"\n")
        for sign, line in body:
            parts.append(sign.encode() + (line if line.endswith(b"\n") else line + _NO_NEWLINE))
    return b"".join(parts)


def _split(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _binary(before: FileState | None, after: FileState | None, object_format: str) -> bytes:
    ids = "..".join(_object_id(state, object_format) for state in (before, after))
    same_mode = before is not None and after is not None and before.executable == after.executable
    mode = f" {_git_mode(after)}" if same_mode and after else ""
    forward, backward = (_literal(state.data if state else b"") for state in (after, before))
    return f"index {ids}{mode}\nGIT binary patch\n".encode() + forward + b"\n" + backward + b"\n"


def _object_id(state: FileState | None, object_format: str) -> str:
    digest = hashlib.new(object_format, usedforsecurity=False)
    if state is None:
        return "0" * (2 * digest.digest_size)
    digest.update(b"blob %d\0" % len(state.data) + state.data)
    return digest.hexdigest()


def _literal(data: bytes) -> bytes:
    packed = zlib.compress(data)
    lines = [b"literal %d\n" % len(data)]
    for start in range(0, len(packed), _LINE_BYTES):
        piece = packed[start : start + _LINE_BYTES]
        length = len(piece)
        letter = chr(ord("A") + length - 1) if length <= 26 else chr(ord("a") + length - 27)
        # git pads the last group with zeros and writes all five of its letters.
        lines.append(letter.encode() + base64.b85encode(piece, pad=True) + b"\n")
    return b"".join(lines)


def _quoted(path: str) -> str:
    """A path as git writes it in a header: in C style where it holds quotes, backslashes, controls or odd bytes."""
    raw = os.fsencode(path)
    if not any(byte < 0x20 or byte >= 0x7F or byte in b'"\\' for byte in raw):
        return path
    escaped = "".join(
        f"\\{chr(byte)}" if byte in b'"\\' else chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}" for byte in raw
    )
    return f'"{escaped}"'
