"""Which folder a request is about, and what a repository's own file may say about it."""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path

from laguna_context.errors import ContextError
from laguna_context.git import find_root
from laguna_context.listing import Selection
from laguna_daemon.config import ContextSettings
from laguna_daemon.errors import RepositoryError

_REPOSITORY_FILE = ".laguna.toml"
_REPOSITORY_FILE_BYTES = 64 * 1024
_ALLOWED = ("include", "exclude", "order")


def here() -> Path:
    """The folder a command runs in. Raises RepositoryError where it has been removed meanwhile."""
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise RepositoryError("The folder this runs in no longer exists.", "Change to another one.") from error


def find(folder: Path, named: bool, force: bool = False) -> Path:
    """The root for a request made in ``folder``; ``named`` says the user gave it by name.

    Inside git an unnamed folder stands for its work tree. Raises RepositoryError where there is none, where it
    is not a folder, and for the home folder and ``/`` unless ``force``.
    """
    try:
        real = folder.resolve(strict=True)
    except (OSError, ValueError) as error:  # ValueError: a zero byte
        reason = error.strerror if isinstance(error, OSError) else error
        raise RepositoryError(f"There is no folder {folder}: {reason}", "Name one with --repo.") from error
    if not real.is_dir():
        raise RepositoryError(f"{folder} is not a folder.", "Name a repository's folder with --repo.")
    root = real if named else _work_tree(real)
    if root is None:
        raise RepositoryError(
            f"{folder} is not inside a git repository, so it is unclear what to read.",
            "Name the folder to read with --repo, or ask without one: --no-context.",
        )
    check(root, force)
    return root


def check(root: Path, force: bool) -> None:
    """Refuse the roots that nobody means: the home folder and ``/``."""
    if not force and is_too_wide(root):
        raise RepositoryError(f"Refusing to read all of {root}.", "Name a project's folder, or repeat with --force.")


def is_too_wide(root: Path) -> bool:
    """Whether a root (a real path) is the home folder or ``/``."""
    return root in (Path("/"), Path.home().resolve())


def selection(root: Path, settings: ContextSettings) -> tuple[Selection, tuple[str, ...]]:
    """The user's selection of files joined with the repository's; and what the repository asked for in vain."""
    asked, notices = _repository_file(root)
    joined = Selection(
        include=(*settings.include, *asked.get("include", ())),
        exclude=(*settings.exclude, *asked.get("exclude", ())),
        submodules=settings.submodules,
        order=tuple(asked.get("order", ())),
    )
    return joined, notices


def _work_tree(folder: Path) -> Path | None:
    try:
        return find_root(folder)
    except ContextError as error:
        raise RepositoryError(error.what, error.advice) from error


def _repository_file(root: Path) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    try:
        handle = os.open(root / _REPOSITORY_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return {}, ()
    except OSError as error:
        return {}, (f"{_REPOSITORY_FILE} was not read: {error.strerror}",)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return {}, (f"{_REPOSITORY_FILE} was not read: it is not a plain file",)
        raw = file.read(_REPOSITORY_FILE_BYTES + 1)
    if len(raw) > _REPOSITORY_FILE_BYTES:
        return {}, (f"{_REPOSITORY_FILE} was not read: it is over {_REPOSITORY_FILE_BYTES} bytes",)
    try:
        return _allowed(tomllib.loads(raw.decode()))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return {}, (f"{_REPOSITORY_FILE} was not read: {error}",)


def _allowed(found: dict[str, object]) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Only lists of strings under the three names; anything else is named, never obeyed."""
    taken: dict[str, tuple[str, ...]] = {}
    notices: list[str] = []
    for name, value in found.items():
        if name not in _ALLOWED:
            notices.append(f"{_REPOSITORY_FILE} may not set {name}; it was ignored")
        elif isinstance(value, list) and all(isinstance(item, str) for item in value):
            taken[name] = tuple(value)
        else:
            notices.append(f"{_REPOSITORY_FILE}: {name} must be a list of strings; it was ignored")
    return taken, tuple(notices)
