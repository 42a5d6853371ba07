"""Building the engine's environment from a lock file.

Packages are downloaded first, a few at a time, and each finished wheel is kept until the installation is
complete: that is what an interrupted installation resumes from. The environment itself is always built from
nothing: pip takes a package whose installation was cut off for installed. It is built under its final path,
since an environment cannot be moved, and counts only once the stamp, written last, is there.
"""

from __future__ import annotations

import json
import os
import re
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from laguna_daemon.engine.setup.commands import CommandFailed, Commands
from laguna_daemon.engine.setup.interpreter import Interpreter
from laguna_daemon.engine.setup.lockfile import Lock, Pin, normal
from laguna_daemon.engine.setup.progress import Progress, Step
from laguna_daemon.engine.setup.storage import InstallFailed, discard, disk_guard, size_of, write_durably

STAMP = "installed.json"
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
_BATCH = 16  # packages per run of pip: starting it costs half a second, and an interruption loses one batch
_VERIFIER = Path(__file__).with_name("verify_environment.py")


class Environment:
    """One environment to be: where it goes, and where its wheels wait meanwhile."""

    def __init__(self, lock: Lock, folder: Path, downloads: Path, commands: Commands, progress: Progress) -> None:
        self._lock = lock
        self._folder = folder
        self._downloads = downloads
        self._commands = commands
        self._progress = progress
        self._wheels = wheel_folder(downloads)
        self.python = folder / "bin" / "python"

    def build(self, interpreter: Interpreter) -> None:
        """Do everything, the stamp included; raises InstallFailed."""
        self._create(interpreter)
        for batch in _batches(missing_wheels(self._lock, self._wheels)):
            self._download(batch)
        self._install()
        self._verify()
        stamp = {
            "kind": self._lock.kind,
            "lock": self._lock.digest,
            "python": str(self.python),
            "version": interpreter.version,
            "created": time.time(),
        }
        write_durably(self._folder / STAMP, json.dumps(stamp, indent=2) + "\n")

    def _create(self, interpreter: Interpreter) -> None:
        self._progress(Step("environment", f"creating an environment of Python {interpreter.version}"))
        with disk_guard(self._folder):
            discard(self._folder)
            self._wheels.mkdir(parents=True, exist_ok=True)
        try:
            self._commands.run([interpreter.path, "-m", "venv", self._folder])
        except CommandFailed as error:
            raise InstallFailed(
                f"{interpreter.path} could not make an environment: {error.reason()}",
                "On Debian and Ubuntu: apt install python3-venv. Or name another Python with --python.",
            ) from error

    def _download(self, batch: Sequence[Pin]) -> None:
        try:
            self._fetch(batch)
        except CommandFailed as error:
            if not (batch[0].cpu_build and "No matching distribution" in error.output):
                raise _not_downloaded(error) from error
            index = os.environ.get("LAGUNA_TORCH_INDEX", TORCH_INDEX)
            self._progress(Step("download", f"no {batch[0].requirement} in pip's index; trying PyTorch's own"))
            try:
                self._fetch(batch, "--index-url", index)
            except CommandFailed as second:
                raise _not_downloaded(second) from second

    def _fetch(self, batch: Sequence[Pin], *options: str) -> None:
        """Download into a folder of its own, then move: a wheel among the kept ones is a whole one."""
        part = self._downloads / "part"
        with disk_guard(part):
            discard(part)
            part.mkdir()
        self._commands.run(
            [
                *self._pip("download"), "--no-deps", "--only-binary=:all:", "--progress-bar=off", "--dest", part,
                *options, *(pin.requirement for pin in batch),
            ],
            tick=self._watch_download(batch),
        )  # fmt: skip
        with disk_guard(self._wheels):
            for wheel in part.iterdir():
                wheel.rename(self._wheels / wheel.name)

    def _watch_download(self, batch: Sequence[Pin]) -> Callable[[str], None]:
        before = size_of(self._wheels)

        def look(output: str) -> None:
            names = re.findall(r"^ *(?:Collecting|Downloading) (?:\S+/)?([A-Za-z0-9._]+)", output, re.MULTILINE)
            total = self._lock.download
            done = min(before + size_of(self._downloads / "part") + size_of(self._downloads / "scratch"), total)
            name = normal(names[-1]) if names else batch[0].name
            self._progress(Step("download", f"downloading {name}", done, total, "bytes"))

        look("")
        return look

    def _install(self) -> None:
        total = len(self._lock.pins)
        site = next((self._folder / "lib").glob("python3*/site-packages"))

        def look(output: str) -> None:
            done = min(sum(1 for _ in site.glob("*.dist-info")), total)
            self._progress(Step("install", "installing packages", done, total, "packages"))

        look("")
        try:
            self._commands.run(
                [
                    *self._pip("install"), "--no-deps", "--no-index", "--only-binary=:all:", "--progress-bar=off",
                    "--find-links", self._wheels, *(pin.requirement for pin in self._lock.pins),
                ],
                tick=look,
            )  # fmt: skip
        except CommandFailed as error:
            raise InstallFailed(
                f"pip could not install the downloaded packages: {error.reason()}",
                "Run the command again; if it stays, remove what was downloaded: laguna-daemon engine remove "
                f"{self._lock.kind}.",
            ) from error

    def _verify(self) -> None:
        self._progress(Step("verify", "checking what was installed"))
        lock = self._downloads / "lock.json"
        pins = {pin.name: pin.version for pin in self._lock.pins}
        write_durably(lock, json.dumps({"pins": pins, "without": list(self._lock.without)}))
        try:
            self._commands.run([self.python, "-I", _VERIFIER, lock])
        except CommandFailed as error:
            lines = error.output.strip().splitlines()
            more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
            raise InstallFailed(
                f"The environment is not what the lock file says: {lines[0] if lines else error.reason()}{more}.",
                "Run the command again. If pip's own settings force other versions, lift them for this command.",
            ) from error

    def _pip(self, command: str) -> list[str | Path]:
        return [self.python, "-m", "pip", command]


def wheel_folder(downloads: Path) -> Path:
    """Where finished wheels wait."""
    return downloads / "wheels"


def missing_wheels(lock: Lock, wheels: Path) -> list[Pin]:
    """The pins that are still to be downloaded; a broken file among the kept ones is removed."""
    have: set[Pin] = set()
    for wheel in wheels.glob("*.whl"):
        if not zipfile.is_zipfile(wheel):
            wheel.unlink()
            continue
        name, version = wheel.name.split("-")[:2]
        have.add(Pin(normal(name), version))
    return [pin for pin in lock.pins if pin not in have]


def _batches(pins: Sequence[Pin]) -> Iterator[Sequence[Pin]]:
    """CPU builds alone, since they may need another index; the rest a few at a time."""
    for pin in pins:
        if pin.cpu_build:
            yield [pin]
    others = [pin for pin in pins if not pin.cpu_build]
    for start in range(0, len(others), _BATCH):
        yield others[start : start + _BATCH]


def _not_downloaded(error: CommandFailed) -> InstallFailed:
    return InstallFailed(
        f"pip could not download the engine's packages: {error.reason()}",
        "Check the network and pip's settings (pip config list), then run the same command again: it continues.",
    )
