"""From a profile and the settings to a command line: argv, environment and socket of the engine.

vLLM's public command line is used as it is, so a published recipe is a profile. The module is started with
``python -m`` since the ``vllm`` script does not work under the CPU wheel.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from laguna_daemon.config import Settings
from laguna_daemon.engine import offload
from laguna_daemon.engine.model import ModelFolder, open_model
from laguna_daemon.engine.profile import Profile
from laguna_daemon.engine.sampling import Sampling, Traits
from laguna_daemon.errors import EngineUnavailable, UsageError
from laguna_daemon.paths import cache_dir, data_dir

MODULE = "vllm.entrypoints.openai.api_server"

# What an engine may know of the daemon's environment: where things are and which GPUs there are, nothing else.
_KEPT = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER", "LD_LIBRARY_PATH")
_KEPT_PREFIXES = ("CUDA_", "NVIDIA_", "NCCL_")
_FIXED = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "PYTHONNOUSERSITE": "1",
    "PYTHONUNBUFFERED": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_DO_NOT_TRACK": "1",
    "VLLM_LOGGING_LEVEL": "INFO",
    "VLLM_NO_USAGE_STATS": "1",
}
_OURS = {"enable-prompt-tokens-details": True, "disable-uvicorn-access-log": True}
# Settings may add any flag except those that decide who can reach the engine and what it serves.
_RESERVED = ("uds", "host", "port", "model", "served-model-name", "api-key", "enable-log-requests")


class HasPython(Protocol):
    """An installed engine: all that a launch needs of it is its Python."""

    @property
    def python(self) -> Path:
        """The interpreter of the engine's environment."""


@dataclass(frozen=True)
class Launch:
    """Everything that is needed to start one engine and to talk to it.

    ``url`` is set, and ``argv`` empty, for an engine that runs elsewhere. ``start_timeout`` is in seconds;
    ``offload_gib`` is the host memory that it takes for KV blocks.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    socket: Path
    model: ModelFolder
    profile: Profile
    traits: Traits
    start_timeout: float = 1800.0
    offload_gib: float = 0.0
    url: str | None = None
    api_key: str | None = None

    def sampling(self, max_tokens: int, **changes: Any) -> Sampling:
        """The profile's sampling defaults with the model's stop tokens, and ``changes`` to them."""
        fields = {**self.profile.sampling.model_dump(), "stop_token_ids": self.model.stop_token_ids, **changes}
        return Sampling(max_tokens=max_tokens, **fields)


def build_launch(profile: Profile, settings: Settings, home: HasPython | None, socket: Path) -> Launch:
    """Put the launch together; raises EngineUnavailable if engine or model are missing, UsageError for bad flags."""
    flags = {**profile.flags, **{_dashed(name): value for name, value in settings.engine.args.items()}}
    dummy = flags.get("load-format") == "dummy"
    real = settings.engine.command is None and profile.kind != "remote" and not dummy
    model = open_model(_model_folder(profile, settings), name=profile.model.name, weights=real)
    common = {
        "socket": socket,
        "model": model,
        "profile": profile,
        "start_timeout": settings.engine.start_timeout,
    }
    if profile.kind == "remote":
        return _remote(profile, settings, common)
    reserved = sorted(set(flags) & set(_RESERVED))
    if reserved:
        raise UsageError(
            f"The engine flags {', '.join(reserved)} are set by the daemon itself.", "Remove them from engine.args."
        )
    if profile.draft is not None and "speculative-config" not in flags:
        flags["speculative-config"] = _speculation(profile, settings, weights=real)
    offload_gib = offload.apply(profile, flags)
    environment = _environment(profile, settings)
    served = {"uds": str(socket), "model": str(model.path), "served-model-name": profile.model.name}
    argv = [*_command(profile, settings, home), *render_flags({**served, **flags, **_OURS})]
    return Launch(
        argv=tuple(argv),
        env=offload.without_expandable_segments(environment) if offload_gib else environment,
        offload_gib=offload_gib,
        traits=_traits(profile, flags, model),
        **common,  # type: ignore[arg-type]
    )


def render_flags(flags: Mapping[str, Any]) -> list[str]:
    """Flags as a command line: true is a bare flag, false none, a table JSON, a list several values."""
    argv: list[str] = []
    for name, value in flags.items():
        if value is False or value is None:
            continue
        argv.append(f"--{name}")
        if value is True:
            continue
        if isinstance(value, Mapping):
            argv.append(json.dumps(value, separators=(",", ":")))
        elif isinstance(value, list | tuple):
            argv.extend(str(item) for item in value)
        else:
            argv.append(str(value))
    return argv


def _remote(profile: Profile, settings: Settings, common: Mapping[str, Any]) -> Launch:
    url = settings.engine.url
    if not url:
        raise EngineUnavailable(
            "The profile remote talks to a vLLM that runs elsewhere, and no address is set.",
            "Set engine.url, e.g. http://gpu-box:8000 (and engine.api_key if it asks for one).",
        )
    model: ModelFolder = common["model"]
    traits = Traits(context=profile.budget.context, vocabulary=model.vocabulary, device="remote")
    return Launch(argv=(), env={}, traits=traits, url=url, api_key=settings.engine.api_key, **common)


def _command(profile: Profile, settings: Settings, home: HasPython | None) -> list[str]:
    if settings.engine.command:
        return list(settings.engine.command)
    python = settings.engine.python or (home.python if home else None)
    if python is None:
        raise EngineUnavailable(
            f"No engine is installed for the profile {profile.name}.",
            f"Install one: laguna-daemon engine install {profile.kind}",
        )
    if not python.is_file():
        raise EngineUnavailable(
            f"The engine's Python {python} does not exist.",
            f"Install the engine again (laguna-daemon engine install {profile.kind}), or correct engine.python.",
        )
    return [str(python), "-m", MODULE]


def _model_folder(profile: Profile, settings: Settings) -> Path:
    return settings.engine.model or data_dir() / "models" / profile.model.name


def _speculation(profile: Profile, settings: Settings, *, weights: bool) -> dict[str, Any]:
    draft = profile.draft
    assert draft is not None
    folder = open_model(settings.engine.draft or data_dir() / "models" / draft.name, weights=weights, tokenizer=False)
    return {"model": str(folder.path), "num_speculative_tokens": draft.tokens, "method": draft.method}


def _environment(profile: Profile, settings: Settings) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)}
    cache = {"VLLM_CACHE_ROOT": str(cache_dir() / "vllm")}
    return {**kept, **_FIXED, **cache, **profile.environment, **settings.engine.env}


def _traits(profile: Profile, flags: Mapping[str, Any], model: ModelFolder) -> Traits:
    speculation = flags.get("speculative-config") or {}
    if isinstance(speculation, str):
        speculation = json.loads(speculation)
    context = flags.get("max-model-len") or model.context
    return Traits(
        context=int(context),
        vocabulary=model.vocabulary,
        device=profile.kind,
        speculation=str(speculation.get("method", "")),
    )


def _dashed(name: str) -> str:
    return name.lstrip("-").replace("_", "-")
