"""Which files a prompt may hold: git's own answer, or the same rules outside git."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from .entries import EVERYTHING, Entry, Explanation, Kind, Listing, Named, Selection
from .errors import NotARepository
from .explaining import explain
from .ignoring import GIT_FILE, Ignorer
from .names import git_names
from .sieve import Sieve
from .walking import global_rules, walk

__all__ = [
    "Entry",
    "Explanation",
    "Kind",
    "Listing",
    "Selection",
    "explain",
    "list_files",
    "refresh",
]

_MOST_ARGUMENTS = 400
"""Paths given to one call of git: the kernel bounds a command line, and beyond some hundreds all is as quick."""


def list_files(root: Path, selection: Selection = EVERYTHING) -> Listing:
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


def refresh(
    root: Path,
    paths: Iterable[str],
    known: Mapping[str, Entry],
    selection: Selection = EVERYTHING,
) -> dict[str, Entry | None]:
    """Look at single paths again: the entry of each as `list_files` would give it now, None where it would
    give none.

    What is `known` costs one `lstat`; only paths that are not cost a call of git. Ignore rules that
    changed, and folders that came or went, need a new listing.
    """
    wanted = set(paths)
    names = [Named(path, e.tracked, e.git_oid, e.kind == "submodule") for path in wanted if (e := known.get(path))]
    unknown = sorted(wanted - known.keys())
    modules = [entry.path for entry in known.values() if entry.kind == "submodule"] if unknown else []
    for top, inner in _by_repository(unknown, modules if selection.submodules else []).items():
        names += [name._replace(path=top + name.path) for name in _names_of(root / top, tuple(inner))]
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
        if len(paths) <= _MOST_ARGUMENTS:
            return git_names(root, False, paths)
        wanted = set(paths)
        return [name for name in git_names(root, False) if name.path in wanted]
    except NotARepository:
        ignorer = Ignorer(root, GIT_FILE, wider=global_rules())
        return [Named(path, False, None) for path in paths if not ignorer.ignores(path)]


def _walked_names(root: Path, left_out: Counter[str]) -> Iterator[Named]:
    for path in walk(root, left_out):
        yield Named(path, False, None)
