"""Lock files of the engine's environments: every package pinned, and what an installation costs."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib import resources
from typing import Literal, get_args

from laguna_daemon.errors import LagunaError

EngineKind = Literal["cpu", "gpu"]
KINDS: tuple[EngineKind, ...] = get_args(EngineKind)

_PIN = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[A-Za-z0-9.!+_-]+)")
_NOTE = re.compile(r"# *(?P<name>[a-z-]+): *(?P<value>.+)")


@dataclass(frozen=True, slots=True)
class Pin:
    """One package at one version; ``name`` is in normal form."""

    name: str
    version: str

    @property
    def requirement(self) -> str:
        """The pin as pip takes it."""
        return f"{self.name}=={self.version}"

    @property
    def cpu_build(self) -> bool:
        """Whether only PyTorch's own index is sure to have it."""
        return self.version.endswith("+cpu")


@dataclass(frozen=True)
class Lock:
    """A full lock file.

    ``digest`` names the set of pins; ``pythons`` are the minor versions it was resolved for; ``download`` and
    ``disk`` are bytes; ``without`` are packages that metadata asks for and that are left out on purpose.
    """

    kind: str
    pins: tuple[Pin, ...]
    pythons: tuple[str, ...] = ()
    machine: str = ""
    cpu_flags: tuple[str, ...] = ()
    download: int = 0
    disk: int = 0
    without: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits that change with any pin."""
        text = "\n".join(sorted(pin.requirement for pin in self.pins))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def normal(name: str) -> str:
    """A package's name in normal form (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_lock(kind: str, text: str) -> Lock:
    """Read a lock file; raises LagunaError for anything but pins and comments, and for a package pinned twice."""
    pins: dict[str, Pin] = {}
    notes: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("#"):
            if note := _NOTE.fullmatch(stripped):
                notes[note["name"]] = note["value"].strip()
            continue
        if not stripped:
            continue
        found = _PIN.fullmatch(stripped)
        name = normal(found["name"]) if found else ""
        if found is None or name in pins:
            raise LagunaError(f"The lock file of the {kind} engine is broken in line {number}: {stripped}")
        pins[name] = Pin(name, found["version"])
    return Lock(
        kind=kind,
        pins=tuple(pins.values()),
        pythons=tuple(notes.get("python", "").split()),
        machine=notes.get("machine", ""),
        cpu_flags=tuple(notes.get("cpu-flags", "").split()),
        download=int(notes.get("download", "0")) * 1_000_000,
        disk=int(notes.get("disk", "0")) * 1_000_000,
        without=tuple(normal(name) for name in notes.get("without", "").split()),
    )


def read_lock(kind: EngineKind) -> Lock:
    """The lock file that the package ships for this kind of engine."""
    return parse_lock(kind, (resources.files(__package__) / "locks" / f"{kind}.lock").read_text(encoding="utf-8"))
