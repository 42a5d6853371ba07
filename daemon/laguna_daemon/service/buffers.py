"""Open documents of all editors: what the user sees beats what the disk holds."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Buffer:
    """One editor's text of one file; ``changed`` is a monotonic time in seconds."""

    path: Path
    text: str
    version: int
    owner: str
    changed: float


class Buffers:
    """The text of every open document, by owner (an editor session) and path. Safe to use from threads.

    Where two editors hold the same file, the buffer changed last wins; ``conflicts`` names such files.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[tuple[str, Path], Buffer] = {}

    def set(self, owner: str, path: Path, text: str, version: int) -> None:
        """Take over the text that ``owner`` has of ``path``."""
        with self._lock:
            self._held[owner, path] = Buffer(path, text, version, owner, time.monotonic())

    def close(self, owner: str, path: Path) -> None:
        """Forget one document; unknown ones are no error."""
        with self._lock:
            self._held.pop((owner, path), None)

    def drop(self, owner: str) -> None:
        """Forget everything of an owner that is gone."""
        with self._lock:
            for key in [key for key in self._held if key[0] == owner]:
                del self._held[key]

    def under(self, root: Path) -> dict[str, Buffer]:
        """The winning buffers below ``root``, by path relative to it (posix)."""
        winning: dict[str, Buffer] = {}
        for buffer in self._snapshot():
            if not buffer.path.is_relative_to(root):
                continue
            name = buffer.path.relative_to(root).as_posix()
            if name not in winning or winning[name].changed < buffer.changed:
                winning[name] = buffer
        return winning

    def conflicts(self, root: Path) -> tuple[str, ...]:
        """Paths below ``root`` that two owners hold with different text."""
        texts: dict[str, set[str]] = {}
        for buffer in self._snapshot():
            if buffer.path.is_relative_to(root):
                texts.setdefault(buffer.path.relative_to(root).as_posix(), set()).add(buffer.text)
        return tuple(sorted(name for name, held in texts.items() if len(held) > 1))

    def _snapshot(self) -> list[Buffer]:
        with self._lock:
            return list(self._held.values())


def texts(buffers: Mapping[str, Buffer]) -> dict[str, str]:
    """Only the texts, as the context builder wants them."""
    return {path: buffer.text for path, buffer in buffers.items()}
