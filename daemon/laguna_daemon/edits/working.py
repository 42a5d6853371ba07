"""The files of a plan as they become, block by block, all in memory."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from laguna_daemon.edits.changes import FileChange, FileState
from laguna_daemon.edits.draft import Draft
from laguna_daemon.edits.files import TextFile, load_text
from laguna_daemon.edits.lines import content, split_lines, usual_ending


@dataclass(slots=True)
class Working:
    """One file that is alive in the plan: what it was on disk, if anything, and its text once that is needed."""

    path: str
    origin: str | None = None
    state: FileState | None = None
    buffer: str | None = None
    executable: bool | None = None
    file: TextFile | None = None
    draft: Draft | None = None

    def open_text(self) -> Draft:
        """The text to edit. Raises NotText."""
        if self.draft is None:
            self.file = self._text()
            self.draft = Draft(self.file.lines)
        return self.draft

    def _text(self) -> TextFile:
        if self.buffer is None:
            return load_text(self.state.data if self.state else b"")
        on_disk = load_text(self.state.data) if self.state else TextFile([])
        return TextFile(split_lines(self.buffer), on_disk.encoding, on_disk.mark)

    def rewrite(self, text: str) -> None:
        """New text for a file that is there, in its encoding and with its usual line ending."""
        old = self.open_text()
        newline = usual_ending(old.base)
        assert self.file is not None
        self.draft = Draft([content(line) + (newline if line.endswith("\n") else "") for line in split_lines(text)])

    def result(self) -> FileState:
        """Bytes and mode as they are to be. Raises UnicodeEncodeError."""
        if self.draft is None or self.file is None:
            assert self.state is not None
            data, mode = self.state.data, self.state.mode
        else:
            same = self.buffer is None and self.state is not None and self.draft.lines == self.file.lines
            data = self.state.data if same and self.state else self.file.encode(self.draft.lines)
            mode = self.state.mode if self.state else new_mode(False)
        if self.executable is not None:
            mode = with_execution(mode, self.executable)
        return FileState(data, mode)

    @property
    def encoding(self) -> str | None:
        """The encoding of the text, None if it was never opened."""
        return self.file.encoding if self.file else None


def with_execution(mode: int, executable: bool) -> int:
    """The mode with execution for everyone who may read, or for nobody."""
    return mode | ((mode & 0o444) >> 2) if executable else mode & ~0o111


def new_mode(executable: bool) -> int:
    """The mode a new file gets from this process' umask."""
    return (0o777 if executable else 0o666) & ~_umask()


def _umask() -> int:
    # os.umask() can only be read by setting it, which other threads would notice.
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0o022
    found = re.search(r"^Umask:\s*([0-7]+)", status, re.MULTILINE)
    return int(found[1], 8) if found else 0o022


def assemble(alive: Mapping[str, Working], disk: Mapping[str, Working]) -> tuple[FileChange, ...]:
    """The changes between ``disk`` (every file that was looked at, as it was) and what is ``alive`` at the end."""
    changes: list[FileChange] = []
    moved_away = set()
    for path, working in alive.items():
        after, there = working.result(), disk.get(path)
        if there is not None:
            if after != there.state:
                changes.append(FileChange(path, there.state, after, None, working.encoding))
        elif working.origin is not None and working.origin not in alive:
            moved_away.add(working.origin)
            changes.append(FileChange(path, working.state, after, working.origin, working.encoding))
        else:
            changes.append(FileChange(path, None, after, None, working.encoding))
    for path, there in disk.items():
        if path not in alive and path not in moved_away:
            changes.append(FileChange(path, there.state, None))
    return tuple(sorted(changes, key=lambda change: os.fsencode(change.path)))
