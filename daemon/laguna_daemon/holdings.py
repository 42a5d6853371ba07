"""Everything the product has put on this machine, and taking it away again.

Only what has a name of ours goes: a folder that the user named (LAGUNA_*_DIR) may hold other things, a model folder may
be the user's own. Symlinks are removed, never followed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from laguna_daemon.engine.setup.download import origin
from laguna_daemon.engine.setup.packaged_model import SMOLLM2
from laguna_daemon.engine.setup.storage import discard, size_of
from laguna_daemon.paths import APP, cache_dir, config_file, data_dir, runtime_dir, state_dir
from laguna_daemon.systemd import unit_file

_MODELS = "models"
_OURS = {
    "data": ("engines", "downloads", ".install.lock", ".download.lock", "conversations.sqlite*"),
    "cache": ("vllm", "ids.sqlite*", "tokenizers.json"),
    "state": ("logs", "edits", "profile", "doctor.json"),
    "runtime": ("*.sock", "*.lock", "engine.json", "engine.new", "marks"),
}


@dataclass(frozen=True)
class Holding:
    """One thing of ours: ``what`` is data, models, cache, state, runtime, service or settings; ``size`` is bytes.

    ``kept`` says why an uninstallation leaves it; empty if it goes.
    """

    what: str
    path: Path
    size: int
    kept: str = ""


def holdings(*, settings: bool = False) -> list[Holding]:
    """All there is, what stays included; ``settings``: the user's config.toml and profiles are to go too."""
    found = [
        *_folder("data", data_dir()),
        *_models(data_dir() / _MODELS),
        *_folder("cache", cache_dir()),
        *_folder("state", state_dir()),
        *_folder("runtime", runtime_dir()),
    ]
    if unit_file().is_file():
        found.append(Holding("service", unit_file(), unit_file().stat().st_size))
    config = config_file().parent
    if config.is_dir():
        kept = "" if settings else "your settings; --settings takes them too"
        found.append(Holding("settings", config, size_of(config), kept))
    return found


def take_away(found: list[Holding]) -> int:
    """Remove what is not to be kept, and the folders that are empty then; returns the bytes freed."""
    freed = 0
    for holding in found:
        if holding.kept:
            continue
        if holding.path.is_dir() and not holding.path.is_symlink():
            freed += discard(holding.path)
        else:  # a socket is no regular file
            holding.path.unlink(missing_ok=True)
            freed += holding.size
    for folder in (data_dir() / _MODELS, data_dir(), cache_dir(), state_dir(), runtime_dir()):
        with contextlib.suppress(OSError):  # not empty: something in it is not ours
            folder.rmdir()
    return freed


def _folder(what: str, folder: Path) -> Iterator[Holding]:
    # A folder that bears our name is ours whole; one that the user named may hold anything else.
    whole = folder.name == APP or folder.name.startswith(f"{APP}-")
    for path in sorted(folder.iterdir()):
        if what == "data" and path.name == _MODELS:
            continue
        ours = whole or any(path.match(pattern) for pattern in _OURS[what])
        size = size_of(path) if path.is_dir() and not path.is_symlink() else path.lstat().st_size
        yield Holding(what, path, size, "" if ours else "not ours")


def _models(folder: Path) -> Iterator[Holding]:
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.is_symlink():
            yield Holding("models", path, 0)
            continue
        ours = path.name.startswith(".") or path.name == SMOLLM2.name or origin(path) is not None
        yield Holding("models", path, size_of(path), "" if ours else "a model that you put there yourself")
