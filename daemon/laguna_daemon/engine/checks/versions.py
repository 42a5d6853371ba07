"""The engine's packages: vLLM's version, what changes with it, and dependencies that drifted from their lock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from laguna_daemon.engine.checks.finding import Finding
from laguna_daemon.engine.checks.situation import Situation, numbers
from laguna_daemon.engine.setup.lockfile import KINDS, read_lock

_SPARSE = "VLLM_PREFIX_CACHE_RETENTION_INTERVAL"


def engine(situation: Situation) -> Iterator[Finding]:
    """Is there an engine at all?"""
    if situation.python is not None or situation.custom or situation.profile.kind == "remote":
        return
    kind = situation.profile.kind
    yield Finding(
        "engine",
        "error",
        f"No engine is installed for the profile {situation.profile.name}.",
        "There is no vLLM to start.",
        f"Install it: laguna-daemon engine install {kind}, or set engine.python to an environment that has vLLM.",
    )


def vllm_version(situation: Situation) -> Iterator[Finding]:
    """Is it the vLLM that the profile was written for?"""
    wanted, found = situation.profile.vllm, situation.vllm
    if situation.profile.kind == "remote" or not wanted or not found:
        return
    if within(found, wanted):
        return
    changes = "; ".join(_changes(found)) or "Flags and figures of the profile may not fit it"
    yield Finding(
        "vllm-version",
        "warning",
        f"The engine is vLLM {_dotted(found)}; the profile {situation.profile.name} was made for {wanted}.",
        changes + ".",
        f"Install the engine of this version (laguna-daemon engine install {situation.profile.kind}), or write a "
        "profile for yours (docs/profiles.md).",
    )


def retention(situation: Situation) -> Iterator[Finding]:
    """Which prefixes the engine keeps of layers with sliding windows."""
    version = situation.vllm
    interval = situation.flags.get("prefix-cache-retention-interval")
    if interval and situation.model is not None and situation.model.there and not _slides(situation.model.config):
        yield Finding(
            "retention",
            "error",
            f"prefix-cache-retention-interval is {interval}, and the model has no layers with sliding windows.",
            "vLLM refuses that after it has loaded the weights.",
            "Remove the flag from the profile or engine.args.",
        )
    if not version or situation.profile.kind != "gpu":
        return
    if version >= (0, 29) and interval is None:
        yield Finding(
            "retention",
            "warning",
            f"vLLM {_dotted(version)} keeps the prefix of sliding-window layers only where an earlier request ended.",
            "An edit inside the repository then costs a full prefill, unless a segment of the warm-up ended before it.",
            f"Set prefix-cache-retention-interval in the profile's flags (e.g. {situation.profile.prefill.segment}).",
        )
    if (0, 23) <= version < (0, 29) and situation.environment.get(_SPARSE):
        yield Finding(
            "retention",
            "warning",
            f"{_SPARSE} is {situation.environment[_SPARSE]}.",
            "Unset, vLLM keeps every prefix; set, only one in so many tokens, and the rest is prefilled again.",
            f"Remove it from the engine's environment ([engine.env] {_SPARSE}).",
        )


def transformers(situation: Situation) -> Iterator[Finding]:
    """vLLM from 0.31 on needs a newer transformers than many environments have."""
    have = situation.packages.get("transformers")
    if situation.vllm >= (0, 31) and have and numbers(have) < (5, 17):
        yield Finding(
            "transformers",
            "error",
            f"vLLM {_dotted(situation.vllm)} stands beside transformers {have}.",
            "From 0.31 on it needs transformers 5.17 or later: it would fail while it reads the model.",
            "Install the engine again, or upgrade transformers in your environment.",
        )


def drift(situation: Situation) -> Iterator[Finding]:
    """Has the environment left its lock, or did its loose dependencies resolve to releases it was not written for?"""
    packages = situation.packages
    if situation.managed and situation.profile.kind in KINDS:
        lock = read_lock("cpu" if situation.profile.kind == "cpu" else "gpu")
        moved = [
            f"{pin.name} {packages.get(pin.name, 'missing')} instead of {pin.version}"
            for pin in lock.pins
            if lock.digest == situation.lock and packages.get(pin.name) != pin.version
        ]
        if moved:
            yield Finding(
                "drift",
                "warning",
                f"{len(moved)} packages of the engine are not those of its lock: {', '.join(moved[:3])}"
                f"{' ...' if len(moved) > 3 else ''}.",
                "Something was installed into its environment; what was tested is no longer what runs.",
                f"laguna-daemon engine remove {situation.profile.kind}, then install it again.",
            )
        return
    if not (0, 0) < situation.vllm < (0, 26):
        return
    late = [
        f"{name} {packages[name]}"
        for name, bound in (("openai", 3), ("mcp", 2), ("anthropic", 1))
        if name in packages and numbers(packages[name])[0] >= bound
    ]
    grammar, ffi = packages.get("xgrammar", "0"), packages.get("apache-tvm-ffi", "")
    if ffi == "0.1.9" and numbers(grammar) >= (0, 2, 9):
        late.insert(0, f"xgrammar {grammar} beside apache-tvm-ffi 0.1.9, which is too old for it")
    if late:
        yield Finding(
            "drift",
            "error" if late[0].startswith("xgrammar") else "warning",
            f"vLLM {_dotted(situation.vllm)} stands beside later releases than it was written for: {', '.join(late)}.",
            "A fresh install resolves today's releases of its loose dependencies, and fails while it is imported.",
            "Use the locked engine: laguna-daemon engine install gpu (and unset engine.python).",
        )


def within(version: tuple[int, ...], wanted: str) -> bool:
    """Whether a version lies in a range such as ``>=0.25.1,<0.26``."""
    tests = {">=": version.__ge__, "<=": version.__le__, "==": version.__eq__, "<": version.__lt__, ">": version.__gt__}
    for part in wanted.split(","):
        sign = next((sign for sign in tests if part.strip().startswith(sign)), "==")
        if not tests[sign](numbers(part)):
            return False
    return True


def _slides(config: Mapping[str, Any]) -> bool:
    """Whether the model has layers that look back a limited way, as far as its config.json says."""
    text = config.get("text_config", config)
    kinds = text.get("layer_types")
    if kinds:
        return any(kind != "full_attention" for kind in kinds)
    return bool(text.get("sliding_window")) or "mamba" in str(config.get("architectures", "")).lower()


def _changes(version: tuple[int, ...]) -> Iterator[str]:
    if version < (0, 23):
        yield "It is older than anything this was tried with"
    if version >= (0, 29):
        yield "From 0.29 on prefixes of sliding-window layers are kept only where a request ended"
    if version >= (0, 31):
        yield "From 0.31 on it needs transformers 5.17"
    if version >= (0, 33):
        yield "From 0.33 on min_p and logit_bias are taken under speculative decoding"


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
