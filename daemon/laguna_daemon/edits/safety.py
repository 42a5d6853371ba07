"""Which paths an edit may touch. Paths come from a model and are hostile until shown otherwise.

``normalise`` looks at the text of a path alone, ``PathChecker`` at what is there on disk. What is checked here is
checked again by ``tree`` at the moment of writing, where no link is ever followed.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from pathlib import Path
from typing import NamedTuple

from laguna_daemon.edits.changes import RefusalCode

_NAME_BYTES = 255
_PATH_BYTES = 4000
# Default-ignorable code points that are not of category Cf: some file systems and most eyes pass over them.
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class PathRefused(Exception):
    """A path no edit may touch. ``code`` is the refusal's code; the text says why."""

    def __init__(self, code: RefusalCode, what: str, advice: str = "") -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.advice = advice


class Place(NamedTuple):
    """A regular file that is there."""

    mode: int
    size: int


def normalise(path: str) -> str:
    """The path as ``a/b/c``. Raises PathRefused for anything that is not a plain relative path outside ``.git``."""
    shown = printable(path)
    if _CONTROL.search(path):
        raise PathRefused("bad path", f"The path '{shown}' contains a control character.")
    if path.startswith(("/", "~")) or re.match(r"[A-Za-z]:|[a-z][a-z0-9+.-]+://", path):
        raise PathRefused("outside", f"'{shown}' is not relative to the repository.")
    if "\\" in path:
        raise PathRefused("bad path", f"'{shown}' contains a backslash; paths are written with '/'.")
    parts = [part for part in path.split("/") if part != "."]
    if ".." in parts:
        raise PathRefused("outside", f"'{shown}' contains '..'; edits stay inside the repository.")
    if path.endswith("/") or not any(parts):
        raise PathRefused("bad path", f"'{shown}' names a folder; edits name files.")
    parts = [part for part in parts if part]
    _check_length(parts, shown)
    for part in parts:
        if is_git_folder(part):
            raise PathRefused("git folder", f"'{shown}' lies in a .git folder, which is never edited.")
    return "/".join(parts)


def _check_length(parts: list[str], shown: str) -> None:
    try:
        lengths = [len(os.fsencode(part)) for part in parts]
    except UnicodeEncodeError:
        raise PathRefused("bad path", f"'{shown}' cannot be a file name.") from None
    if max(lengths) > _NAME_BYTES or sum(lengths) + len(lengths) > _PATH_BYTES:
        raise PathRefused("bad path", f"'{shown[:80]}...' is too long for a path.")


def is_git_folder(name: str) -> bool:
    """Whether a name is ``.git`` on any file system: other case, 8.3 form, trailing dots, streams, invisible marks."""
    folded = fold(name).partition(":")[0].rstrip(". ")
    return folded == ".git" or re.fullmatch(r"git~\d+", folded) is not None


def fold(name: str) -> str:
    """What a name becomes where case, compatibility forms and invisible characters do not count."""
    if name.isascii():
        return name.lower()
    visible = "".join(c for c in _INVISIBLE.sub("", name) if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())


def printable(path: str) -> str:
    """A path as it can be put into a message: control and invisible characters escaped, long ones cut."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in path[:200])
    return shown if len(path) <= 200 else shown + "..."


class PathChecker:
    """Looks at paths below one root, remembering what it has seen; make a new one for every plan."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders: dict[str, bool] = {"": True}
        self._names: dict[str, frozenset[str]] = {}
        self._folded: dict[str, dict[str, str]] = {}

    def look(self, path: str) -> Place | None:
        """The regular file at a normalised path, or None if nothing is there. Raises PathRefused."""
        parent, _, name = path.rpartition("/")
        if not self._folder(parent):
            return None
        if name not in self._listing(parent):
            return None
        try:
            found = os.lstat(self._root / path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise PathRefused("unreadable", f"'{path}' cannot be read: {error.strerror}.") from error
        if stat.S_ISLNK(found.st_mode):
            raise PathRefused("link", f"'{path}' is a symbolic link.", self._real(path))
        if stat.S_ISDIR(found.st_mode):
            raise PathRefused("folder", f"'{path}' is a folder; edits name files.")
        if not stat.S_ISREG(found.st_mode):
            raise PathRefused("special file", f"'{path}' is a device, a pipe or a socket, not a file.")
        return Place(stat.S_IMODE(found.st_mode), found.st_size)

    def twin(self, path: str) -> str | None:
        """A path that is there and differs from this one only by case, Unicode form or invisible characters."""
        parent = ""
        for part in path.split("/"):
            if part not in self._listing(parent):
                other = self._by_fold(parent).get(fold(part))
                return f"{parent}/{other}".lstrip("/") if other is not None else None
            parent = f"{parent}/{part}".lstrip("/")
        return None

    def names(self, folder: str) -> list[str]:
        """The names in a folder, empty if it is not there."""
        return sorted(self._listing(folder))

    def _folder(self, path: str) -> bool:
        """Whether a folder is there, reached through no link and inside no other repository."""
        if path in self._folders:
            return self._folders[path]
        parent, _, name = path.rpartition("/")
        there = self._folder(parent) and name in self._listing(parent)
        if there:
            mode = os.lstat(self._root / path).st_mode
            if stat.S_ISLNK(mode):
                raise PathRefused("link", f"'{path}' is a symbolic link to a folder.", self._real(path))
            if not stat.S_ISDIR(mode):
                raise PathRefused("bad path", f"'{path}' is a file, so nothing can lie below it.")
            if any(is_git_folder(entry) for entry in self._listing(path, True)):
                raise PathRefused("other repository", f"'{path}' is a repository of its own (a submodule).")
        self._folders[path] = there
        return there

    def _listing(self, folder: str, known: bool = False) -> frozenset[str]:
        if folder not in self._names:
            try:
                entries = os.listdir(self._root / folder) if known or self._folder(folder) else []  # noqa: PTH208 - names only
            except OSError:
                entries = []
            self._names[folder] = frozenset(entries)
        return self._names[folder]

    def _by_fold(self, folder: str) -> dict[str, str]:
        if folder not in self._folded:
            self._folded[folder] = {fold(name): name for name in self.names(folder)}
        return self._folded[folder]

    def _real(self, path: str) -> str:
        """Advice that names the link's target, if that lies inside the root."""
        real = Path(os.path.realpath(self._root / path))
        root = Path(os.path.realpath(self._root))
        if real.is_relative_to(root) and real != root:
            return f"Edit '{real.relative_to(root).as_posix()}' instead."
        return "It leads out of the repository." if not real.is_relative_to(root) else ""
