"""From the last lines of an engine's log, and the way it ended, to a message with the setting to change."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why an engine ended. ``permanent``: starting it again unchanged would end the same way."""

    kind: str
    what: str
    advice: str
    permanent: bool


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: str
    pattern: re.Pattern[str]
    what: str
    advice: str
    permanent: bool = True


def _rule(kind: str, pattern: str, what: str, advice: str, permanent: bool = True) -> _Rule:
    return _Rule(kind, re.compile(pattern), what, advice, permanent)


# The first rule that matches anywhere in the tail wins, so the specific stand before the general. `{0}` is the whole
# match, `{1}` its first group.
_RULES = (
    _rule(
        "flag",
        r"error: unrecognized arguments: (.+)",
        "This vLLM does not know the flag {1}.",
        "Remove it from engine.args or the profile, or use the vLLM version that the profile names.",
    ),
    _rule(
        "flag",
        r"error: argument (\S+?):? (.*)",
        "This vLLM refuses the value of {1} ({2}).",
        "Correct it in engine.args or the profile.",
    ),
    _rule(
        "package",
        r"No package metadata was found for (\S+)|PackageNotFoundError: (.+)",
        "The engine's environment is not whole ({0}).",
        "Install the engine again: laguna-daemon engine install",
    ),
    _rule(
        "package",
        r"ModuleNotFoundError: No module named '([^']+)'|ImportError: (.+)|operator torchvision::nms does not exist",
        "The engine's environment is not whole, or packages in it do not fit each other ({0}).",
        "Install the engine again (laguna-daemon engine install), or correct engine.python.",
    ),
    _rule(
        "guard",
        r"guard: cannot start (.+)",
        "The engine's command cannot be started: {1}.",
        "Install the engine again (laguna-daemon engine install), or correct engine.python.",
    ),
    _rule(
        "draft",
        r"All drafting layers should belong to the same kv cache group",
        "The draft model does not fit the target model's layers.",
        "Use the pair of checkpoints that the profile pins (engine.model, engine.draft).",
    ),
    _rule(
        "offload",
        r"expandable_segments.*(?:not supported|incompatible|disable|KV)|KV.*expandable_segments",
        "KV offloading does not work with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
        'Set engine.env.PYTORCH_CUDA_ALLOC_CONF = "" in the settings, or do not offload.',
    ),
    _rule(
        "context",
        r"To serve at least one request with the models?'s max seq len \((\d+)\).*?(?:is needed|available)",
        "The KV cache does not hold one request of {1} tokens in the memory that is left beside the weights.",
        "Set a smaller max-model-len (and budget.context), or raise gpu-memory-utilization a little.",
    ),
    _rule(
        "memory",
        r"No available memory for the cache blocks",
        "The weights leave no memory for the KV cache.",
        "Raise gpu-memory-utilization (up to 0.88 on 24 GB), use more GPUs, or a smaller model.",
    ),
    _rule(
        "busy-gpu",
        r"Free memory on device.*?\(([^)]*)\).*is less than desired",
        "Something else holds memory of the GPU ({1}), so the engine cannot have its share.",
        "See who it is (nvidia-smi), or lower gpu-memory-utilization.",
        False,
    ),
    _rule(
        "memory",
        r"torch\.OutOfMemoryError|CUDA out of memory|OutOfMemoryError|HIP out of memory",
        "The GPU ran out of memory.",
        "Lower max-num-batched-tokens or gpu-memory-utilization (0.87 is known to work on 24 GB), or max-model-len.",
        False,
    ),
    _rule(
        "memory",
        r"DefaultCPUAllocator: can't allocate memory|MemoryError|Cannot allocate memory",
        "The machine ran out of memory.",
        "Lower kv-cache-memory-bytes or max-model-len, or close something.",
        False,
    ),
    _rule(
        "disk",
        r"No space left on device",
        "The disk is full.",
        "Make room (laguna-daemon gc shows what the product holds), then start again.",
    ),
    _rule(
        "driver",
        r"CUDA driver version is insufficient.*|NVIDIA driver on your system is too old.*|no kernel image is.*",
        "The GPU's driver or architecture does not fit this engine ({0}).",
        "Update the driver, or install the engine that fits it.",
    ),
    _rule(
        "gpus",
        r"World size \((\d+)\) is larger than the number of available GPUs|No CUDA GPUs are available",
        "The profile needs more GPUs than there are.",
        "Choose another profile, or check CUDA_VISIBLE_DEVICES.",
    ),
    _rule(
        "architecture",
        r"Model architectures \[(.+?)\] are not supported|does not recognize this architecture",
        "This vLLM does not know the model's architecture ({0}).",
        "Use the vLLM version that the profile names, or another model.",
    ),
    _rule(
        "context",
        r"User-specified max_model_len \((\d+)\) is greater than the derived max_model_len",
        "The context asked for ({1} tokens) is larger than the model's own.",
        "Set a smaller max-model-len and budget.context.",
    ),
    _rule(
        "weights",
        r"SafetensorError|Error while deserializing header|Cannot find any model weights|invalid load key",
        "The model's weights cannot be read: a file is missing or cut short.",
        "Install the model again, or name a whole folder in engine.model.",
    ),
    _rule(
        "socket",
        r"Address already in use",
        "The engine's socket is in use.",
        "End the other engine: laguna-daemon stop, then look for processes of it.",
        False,
    ),
    _rule(
        "configuration",
        r"(?:Value error,|(?:ValueError|VLLMValidationError|NotImplementedError):) (.+?)(?: \[type=|\n|$)",
        "vLLM refuses the configuration: {1}",
        "Correct engine.args or the profile; the whole reason: laguna-daemon logs",
    ),
)


def diagnose(lines: Sequence[str], code: int | None) -> Diagnosis:
    """Classify an end. ``lines`` is the log's tail, ``code`` the exit code (negative: a signal), None if unknown."""
    text = "\n".join(lines)
    for rule in _RULES:
        found = rule.pattern.search(text)
        if found:
            groups = [found[0], *(group or "" for group in found.groups()), "", ""]
            what = rule.what.format(*(" ".join(group.split())[:300] for group in groups))
            return Diagnosis(rule.kind, what, rule.advice, rule.permanent)
    return _by_code(code)


def _by_code(code: int | None) -> Diagnosis:
    log = "The last lines of its log: laguna-daemon logs"
    if code == -signal.SIGKILL:
        return Diagnosis(
            "killed",
            "The engine was killed; often the system does that when memory runs out.",
            "If it happens again: lower kv-cache-memory-bytes or max-model-len, or close something.",
            False,
        )
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return Diagnosis("crash", f"The engine crashed ({name}).", log, False)
    if code is None or code == 0:
        return Diagnosis("ended", "The engine ended by itself.", log, False)
    return Diagnosis("crash", f"The engine ended with exit code {code}.", log, False)
