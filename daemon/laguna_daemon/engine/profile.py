"""Profiles: one deployment of one model, as data.

A profile is a TOML file in the package's ``profiles`` folder. A file of the same name in ``profiles`` beside the
user's config.toml is laid over it, table by table; a file of another name there is a profile of its own, and may
start from any other with ``extends``. A flag set to ``false`` is left out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from laguna_daemon.config import Settings
from laguna_daemon.errors import UsageError
from laguna_daemon.paths import config_file


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelSection(_Section):
    """Which checkpoint: the folder's name under the data folder's ``models``, and where it comes from."""

    name: str
    repository: str = ""
    revision: str = ""
    architecture: str = ""


class DraftSection(ModelSection):
    """The draft model of speculative decoding; ``tokens`` is the depth k."""

    method: str
    tokens: int = Field(ge=1)


class GpuSection(_Section):
    """What the profile needs: ``count`` GPUs with at least ``memory_gib`` GiB each."""

    count: int = Field(default=1, ge=1)
    memory_gib: float = Field(gt=0)


class BudgetSection(_Section):
    """Tokens: the context, and what of it is reserved; the snapshot gets what remains."""

    context: int = Field(ge=256)
    output: int = Field(ge=1)
    task: int = Field(ge=1)
    overlay: int = Field(ge=0)


class SamplingSection(_Section):
    """Sampling defaults; every field is sent with every request."""

    temperature: float = Field(default=0.0, ge=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: int = Field(default=0, ge=0)
    min_p: float = Field(default=0.0, ge=0, le=1)
    repetition_penalty: float = Field(default=1.0, gt=0)
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0


class ThinkingSection(_Section):
    """Whether the model reasons before it answers, and the special tokens around the reasoning."""

    supported: bool = False
    default: bool = False
    open: str = "<think>"
    close: str = "</think>"


class FimSection(_Section):
    """How the model takes infill, if it was trained on it; without this section it is asked in words.

    ``form`` is the prompt, in the order the model was trained on, with ``{prefix}`` and ``{suffix}``; everything else
    in it is control tokens, which must be in the tokenizer. ``stop`` are texts that end the infill.
    """

    form: str
    stop: tuple[str, ...] = ()

    @field_validator("form")
    @classmethod
    def _slots(cls, value: str) -> str:
        if value.count("{prefix}") != 1 or value.count("{suffix}") > 1:
            raise ValueError("{prefix} must stand in it once, {suffix} at most once")
        return value


class PrefillSection(_Section):
    """Long prompts are prefilled in segments of this many tokens."""

    segment: int = Field(default=16384, ge=256)


class CacheSection(_Section):
    """How the model's KV cache is laid out and kept (docs/residency.md).

    ``groups``: KV groups that share the pool; ``window``: blocks that the sliding ones hold at one place, all
    together; ``anchors``: places, in percent of the prefix, that are kept reusable for compactions where there is no
    offloading. ``offload``: ``auto`` copies blocks to host memory if there is room for ``repositories``, a number is
    the size in GiB, false turns it off; ``token_bytes``: KV bytes per token in one group over all GPUs; ``settle``:
    this vLLM's copy of a prefix is whole only after a second request over it.
    """

    groups: int = Field(default=1, ge=1)
    window: int = Field(default=0, ge=0)
    anchors: tuple[int, ...] = ()
    offload: Literal["auto", False] | float = False
    repositories: int = Field(default=2, ge=1)
    token_bytes: int = Field(default=0, ge=0)
    settle: bool = False


class SupervisionSection(_Section):
    """When a running engine counts as wedged, and how often it is started again.

    ``wedge_seconds``: work queued and no counter moving for so long; ``restarts`` failures in a row within
    ``restart_window`` seconds are the last.
    """

    wedge_seconds: float = Field(default=120, gt=0)
    restarts: int = Field(default=5, ge=0)
    restart_window: float = Field(default=900, gt=0)


class RemoteSection(_Section):
    """What a vLLM elsewhere understands."""

    dialect: Literal["vllm", "openai"] = "vllm"
    priority: bool = False


class Profile(_Section):
    """One deployment. ``flags`` are vLLM's own, without dashes; ``departures`` explains each that is not published."""

    name: str
    summary: str
    kind: Literal["cpu", "gpu", "remote"]
    vllm: str = ""
    block_size: int = Field(ge=1)
    model: ModelSection
    draft: DraftSection | None = None
    gpus: GpuSection | None = None
    flags: dict[str, Any] = {}
    environment: dict[str, str] = {}
    departures: dict[str, str] = {}
    budget: BudgetSection
    sampling: SamplingSection = SamplingSection()
    thinking: ThinkingSection = ThinkingSection()
    fim: FimSection | None = None
    prefill: PrefillSection = PrefillSection()
    cache: CacheSection = CacheSection()
    supervision: SupervisionSection = SupervisionSection()
    remote: RemoteSection = RemoteSection()

    @field_validator("draft", "fim", mode="before")
    @classmethod
    def _no_draft(cls, value: object) -> object:
        return None if value is False else value

    @property
    def priority(self) -> bool:
        """Whether requests may carry a priority."""
        if self.kind == "remote":
            return self.remote.priority
        return self.flags.get("scheduling-policy") == "priority"


class Gpu(Protocol):
    """A GPU as found on this machine."""

    @property
    def name(self) -> str:
        """The product's name."""

    @property
    def memory_gib(self) -> float:
        """Its whole memory in GiB."""


@dataclass(frozen=True)
class Choice:
    """The profile to use, and why, in words a user can read."""

    profile: Profile
    reason: str


def profile_names() -> tuple[str, ...]:
    """Names of all profiles, the user's own included, sorted."""
    names = {item.name.removesuffix(".toml") for item in _package().iterdir() if item.name.endswith(".toml")}
    folder = config_file().parent / "profiles"
    if folder.is_dir():
        names.update(path.stem for path in folder.glob("*.toml"))
    return tuple(sorted(names))


def load_profile(name: str) -> Profile:
    """Read the profile ``name``; raises UsageError that says what is wrong with it."""
    table = _resolve(name, ())
    try:
        return Profile.model_validate({**table, "name": name})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"The profile {name} is wrong at {where}: {first['msg']}", "Correct the file (docs/profiles.md)."
        ) from error


def choose_profile(settings: Settings, gpus: Sequence[Gpu]) -> Choice:
    """The profile that the settings name, or else the one that fits the GPUs found."""
    if settings.profile:
        return Choice(load_profile(settings.profile), "named in the settings")
    if settings.engine.url:
        return Choice(load_profile("remote"), "engine.url is set")
    if not gpus:
        return Choice(load_profile("cpu"), "no GPU was found")
    found = f"{len(gpus)} x {gpus[0].name}, {min(gpu.memory_gib for gpu in gpus):.0f} GiB each"
    # Best first: more context and a draft before less.
    for name in ("laguna-s-2.1-141gb", "laguna-s-2.1-4x24gb", "laguna-s-2.1-80gb", "laguna-xs-2.1"):
        profile = load_profile(name)
        if profile.gpus and _fits(profile.gpus, gpus):
            return Choice(profile, f"fits the GPUs found ({found})")
    return Choice(load_profile("cpu"), f"no GPU profile fits the GPUs found ({found})")


def _fits(need: GpuSection, gpus: Sequence[Gpu]) -> bool:
    return sum(gpu.memory_gib >= need.memory_gib for gpu in gpus) >= need.count


def _package() -> resources.abc.Traversable:
    return resources.files("laguna_daemon.engine") / "profiles"


def _resolve(name: str, above: tuple[str, ...]) -> dict[str, Any]:
    if name in above:
        raise UsageError(f"The profiles {' -> '.join((*above, name))} extend each other.", "Break the circle.")
    if "/" in name or name.startswith("."):
        raise UsageError(f"{name!r} is not the name of a profile.", f"There are: {', '.join(profile_names())}")
    layers = [table for table in (_packaged(name), _users(name)) if table is not None]
    if not layers:
        raise UsageError(f"There is no profile {name!r}.", f"There are: {', '.join(profile_names())}")
    result: dict[str, Any] = {}
    for table in layers:
        parent = table.pop("extends", None)
        if parent:
            result = _merge(result, _resolve(str(parent), (*above, name)))
        result = _merge(result, table)
    return result


def _packaged(name: str) -> dict[str, Any] | None:
    source = _package() / f"{name}.toml"
    return tomllib.loads(source.read_text(encoding="utf-8")) if source.is_file() else None


def _users(name: str) -> dict[str, Any] | None:
    path = config_file().parent / "profiles" / f"{name}.toml"
    if not path.is_file():
        return None
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}", "Correct the file.") from error


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Tables are merged key by key; anything else from ``above`` replaces what was there."""
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        result[key] = _merge(old, value) if isinstance(value, Mapping) and isinstance(old, Mapping) else value
    return result
