"""Which files a prompt may hold: git's own answer, or the same rules outside git."""

from __future__ import annotations

import os
import stat
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from .errors import ContextError, NotARepository
from .git import run_git
from .ignoring import GIT_FILE, OWN_FILE, Globs, Ignorer
from .walking import global_rules, walk

Kind = Literal["file", "symlink", "submodule", "nested"]
_GITLINK = "160000"


@dataclass(frozen=True, slots=True)
class Entry:
    """One listed path, relative to the root, posix, odd bytes as surrogate escapes.

    The stat fields (bytes, nanoseconds) come from one `lstat` and are 0 for what has none. `git_oid` is the
    blob's id in the index: the file on disk may have been edited since. Files that are no plain files keep
    the kind "file"; their `mode` tells.
    """

    path: str
    kind: Kind
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    mode: int
    tracked: bool
    git_oid: str | None


@dataclass(frozen=True)
class Selection:
    """What one call wants of a root: globs in gitignore's language, submodules or not; `order` is for the
    snapshot."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    submodules: bool = False
    order: tuple[str, ...] = ()


@dataclass(frozen=True)
class Listing:
    """Entries in path order, and how many paths were left out, by reason."""

    root: Path
    entries: tuple[Entry, ...]
    left_out: Mapping[str, int]
    in_git: bool


@dataclass(frozen=True, slots=True)
class Named:
    """A path before it has been looked at on disk."""

    path: str
    tracked: bool
    oid: str | None
    gitlink: bool = False


def list_files(root: Path, selection: Selection = Selection()) -> Listing:
    """Every path git would list at `root` (`git ls-files -co --exclude-standard`), less the user's own
    exclusions.

    Symbolic links, submodules and nested repositories are listed, never entered (submodules are, if
    selected). Reasons in `left_out`: "missing" (in the index, not on disk), "behind a symlink",
    ".lagunaignore", "not included", "excluded", and outside git "ignored" (a pruned folder counts once).

    Raises `ContextError` and its kinds if the folder cannot be listed.
    """
    left_out: Counter[str] = Counter()
    try:
        names: Iterable[Named] = git_names(root, selection.submodules)
        in_git = True
    except NotARepository:
        if (root / "HEAD").is_file() and (root / "objects").is_dir():
            raise
        names = _walked_names(root, left_out)
        in_git = False
    kept = Sieve(root, selection, left_out).sift(names)
    entries = tuple(sorted(kept, key=lambda entry: entry.path))
    return Listing(root, entries, dict(left_out), in_git)


def git_names(root: Path, submodules: bool, paths: tuple[str, ...] = ()) -> list[Named]:
    """What git lists at `root`, or of `paths` only, in one call per repository."""
    if not root.is_dir():
        raise ContextError(f"{root} is not a folder.", "Name an existing folder.")
    answer = run_git(root, "ls-files", "-s", "-o", "-t", "-z", "--exclude-standard", "--", *paths)
    names: dict[str, Named] = {}
    for record in answer.decode(sys.getfilesystemencoding(), "surrogateescape").split("\0"):
        if record.startswith("? "):
            path = record[2:]
            names[path] = Named(path, False, None)
        elif record:
            head, _, path = record.partition("\t")
            _, mode, oid, stage = head.split(" ")
            names[path] = Named(path, True, oid if stage == "0" else None, mode == _GITLINK)
    found = list(names.values())
    if submodules:
        for name in [name for name in found if name.gitlink]:
            found += _inside_submodule(root, name.path)
    return found


def refresh(
    root: Path,
    paths: Iterable[str],
    known: Mapping[str, Entry],
    selection: Selection = Selection(),
) -> dict[str, Entry | None]:
    """Look at single paths again: the entry of each as `list_files` would give it now, None where it would
    give none.

    What is `known` costs one `lstat`; only paths that are not cost a call of git. Ignore rules that
    changed, and folders that came or went, need a new listing.
    """
    wanted = set(paths)
    names = [
        Named(path, e.tracked, e.git_oid, e.kind == "submodule") for path in wanted if (e := known.get(path))
    ]
    unknown = sorted(wanted - known.keys())
    modules = [entry.path for entry in known.values() if entry.kind == "submodule"] if unknown else []
    for top, inner in _by_repository(unknown, modules if selection.submodules else []).items():
        names += [replace(name, path=top + name.path) for name in _names_of(root / top, tuple(inner))]
    found: dict[str, Entry | None] = dict.fromkeys(wanted)
    found |= {entry.path: entry for entry in Sieve(root, selection, Counter()).sift(names)}
    return found


def _by_repository(paths: Iterable[str], modules: list[str]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for path in paths:
        top = max((f"{module}/" for module in modules if path.startswith(f"{module}/")), key=len, default="")
        grouped.setdefault(top, []).append(path[len(top) :])
    return grouped


def _names_of(root: Path, paths: tuple[str, ...]) -> list[Named]:
    try:
        return git_names(root, False, paths)
    except NotARepository:
        ignorer = Ignorer(root, GIT_FILE, wider=global_rules())
        return [Named(path, False, None) for path in paths if not ignorer.ignores(path)]


def _inside_submodule(root: Path, path: str) -> list[Named]:
    folder = root / path
    if not os.path.lexists(folder / ".git") or folder.is_symlink():
        return []
    try:
        inner = git_names(folder, True)
    except NotARepository:
        return []
    return [replace(name, path=f"{path}/{name.path}") for name in inner]


def _walked_names(root: Path, left_out: Counter[str]) -> Iterator[Named]:
    for path in walk(root, left_out):
        yield Named(path, False, None)


class Sieve:
    """Turns names into entries: one `lstat` each, the selection's globs and the user's own ignore files
    applied."""

    def __init__(self, root: Path, selection: Selection, left_out: Counter[str]) -> None:
        self._prefix = os.fspath(root) + "/"
        self._include = Globs(selection.include)
        self._exclude = Globs(selection.exclude)
        self._left_out = left_out
        self._folders: dict[str, bool] = {"": True}
        self._own_rules = os.path.lexists(self._prefix + OWN_FILE)
        self._own = Ignorer(root, OWN_FILE)

    def sift(self, names: Iterable[Named]) -> list[Entry]:
        """The entries that remain; whatever does not is counted with its reason."""
        found = []
        for name in names:
            entry = self._look(name)
            if entry is not None:
                found.append(entry)
        if not (self._own_rules or self._include or self._exclude):
            return found
        return [entry for entry in found if self._wanted(entry)]

    def _look(self, name: Named) -> Entry | None:
        path = name.path.removesuffix("/")
        if not self._real_folder(path.rpartition("/")[0]):
            self._left_out["behind a symlink"] += 1
            return None
        try:
            seen = os.lstat(self._prefix + path)
        except (OSError, ValueError):
            self._left_out["missing"] += 1
            return None
        kind = _kind(name, seen.st_mode)
        if kind is None:
            self._left_out["missing"] += 1
            return None
        return Entry(
            path,
            kind,
            seen.st_size,
            seen.st_mtime_ns,
            seen.st_ctime_ns,
            seen.st_ino,
            seen.st_mode,
            name.tracked,
            name.oid,
        )

    def _real_folder(self, folder: str) -> bool:
        """Whether no part of the path is a symbolic link: git takes what is tracked behind one for
        deleted."""
        known = self._folders.get(folder)
        if known is None:
            known = self._folders[folder] = self._real_folder(folder.rpartition("/")[0]) and not _is_link(
                self._prefix + folder
            )
            if known and not self._own_rules:
                self._own_rules = os.path.lexists(self._prefix + folder + "/" + OWN_FILE)
        return known

    def _wanted(self, entry: Entry) -> bool:
        path = entry.path
        if self._own_rules and self._own.ignores(path, is_dir=entry.kind in ("submodule", "nested")):
            self._left_out[OWN_FILE] += 1
        elif self._include and not self._include.matches(path):
            self._left_out["not included"] += 1
        elif self._exclude and self._exclude.matches(path):
            self._left_out["excluded"] += 1
        else:
            return True
        return False


def _is_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError:
        return False


def _kind(name: Named, mode: int) -> Kind | None:
    if stat.S_ISDIR(mode):
        if name.gitlink:
            return "submodule"
        return None if name.tracked else "nested"
    return "symlink" if stat.S_ISLNK(mode) else "file"
