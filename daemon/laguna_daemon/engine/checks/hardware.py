"""GPUs, their driver and their memory; the KV arithmetic; memory of the machine."""

from __future__ import annotations

from collections.abc import Iterator

from laguna_daemon.engine.checks.arithmetic import memory, size_of_flag
from laguna_daemon.engine.checks.finding import Finding, Severity
from laguna_daemon.engine.checks.situation import GIB, Situation, numbers

# CUDA 13 needs a driver of this branch: https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/
_DRIVER = 580
_SMALL_CARD_GIB = 25.0
_LONG = 160_000
# What one 190K repository takes in host memory with the draft: 16-token pages of each KV group, stored densely.
_OFFLOAD_PER_REPOSITORY_GIB = 21_000_000_000 / GIB


def gpus(situation: Situation) -> Iterator[Finding]:
    """Are there enough GPUs, and are they large enough?"""
    need = situation.profile.gpus
    if situation.profile.kind != "gpu" or need is None:
        return
    found = situation.gpus
    wanted = max(need.count, situation.parallel)
    large = [gpu for gpu in found if gpu.memory_gib >= need.memory_gib]
    if len(large) >= wanted:
        return
    if not found:
        what = "No NVIDIA GPU was found."
    else:
        what = f"Found {len(found)} x {found[0].name} with {min(gpu.memory_gib for gpu in found):.0f} GiB each."
    yield Finding(
        "gpus",
        # A start command of the user's own may reach GPUs that this machine does not have.
        "warning" if situation.custom else "error",
        what,
        f"The profile {situation.profile.name} needs {wanted} GPU{'s' if wanted > 1 else ''} of at least "
        f"{need.memory_gib:.0f} GiB.",
        "Choose another profile (laguna-daemon engine use cpu), or check the driver and CUDA_VISIBLE_DEVICES.",
    )


def driver(situation: Situation) -> Iterator[Finding]:
    """Is the driver new enough for the engine's CUDA, and can the GPUs run its kernels?"""
    if situation.profile.kind != "gpu" or not situation.gpus:
        return
    major = (numbers(situation.driver) or (0,))[0]
    if major and major < _DRIVER:
        yield Finding(
            "driver",
            "error" if situation.managed else "warning",
            f"The NVIDIA driver is {situation.driver}.",
            f"The engine is built for CUDA 13, which needs driver {_DRIVER} or later; its first kernel would fail.",
            "Update the driver, or set engine.python to an environment whose vLLM is built for this driver.",
        )
    old = [gpu for gpu in situation.gpus[: situation.parallel] if gpu.capability < (8, 0)]
    if old and situation.flags.get("moe-backend") == "marlin":
        major, minor = old[0].capability
        yield Finding(
            "driver",
            "error",
            f"{old[0].name} has compute capability {major}.{minor}.",
            "The INT4 kernels (marlin) need 8.0 or later, which the RTX 30 series was the first to have.",
            "Use a newer GPU or another profile.",
        )


def free_memory(situation: Situation) -> Iterator[Finding]:
    """Does something else hold memory of the GPUs? Often it is what a killed server left behind."""
    if situation.profile.kind != "gpu" or situation.own_engine_runs:
        return
    share = float(situation.flags.get("gpu-memory-utilization") or 0.9)
    for gpu in situation.gpus[: situation.parallel]:
        if gpu.free_gib < gpu.memory_gib * share:
            yield Finding(
                "free-memory",
                "warning",
                f"GPU {gpu.index} ({gpu.name}) has {gpu.free_gib:.1f} of {gpu.memory_gib:.1f} GiB free; the engine "
                f"wants {gpu.memory_gib * share:.1f}.",
                "Another program holds the rest: often the workers of a vLLM whose server was killed, which keep their "
                "memory while its port is free. The start would fail for lack of memory.",
                "See who it is with nvidia-smi and end it; processes of this daemon are ended by the start itself.",
            )


def kv_memory(situation: Situation) -> Iterator[Finding]:
    """Do weights and KV cache of one whole context fit beside each other?"""
    found = memory(situation)
    if situation.profile.kind != "gpu" or found is None:
        return
    context = situation.context
    sums = (
        f"{found.weights:.1f} GiB of weights and {found.reserve:.1f} GiB of reserve leave {max(found.pool, 0):.2f} GiB "
        f"per GPU for the KV cache; a request of {context:,} tokens needs {found.needed:.2f} GiB."
    )
    if found.pool < found.needed:
        surely = found.sure or found.pool < found.needed - 0.15 * found.weights
        yield Finding(
            "kv-memory",
            "error" if surely else "warning",
            sums,
            "The engine would load for minutes and then refuse the context."
            + (
                ""
                if surely
                else " (The weights are guessed from their files, which can be larger than what is loaded.)"
            ),
            f"Set max-model-len and budget.context to at most {_fitting(found.pool, found.needed, context):,}, use a "
            "profile without draft, or more GPUs.",
        )
        return
    note = sums + f" The pool holds {found.tokens:,} tokens, {found.tokens / context:.2f} such requests."
    if found.tokens < 2 * context:
        yield Finding(
            "kv-memory",
            "note",
            note,
            "Two whole repositories cannot be kept together; a long chat elsewhere can push the first one out.",
            "KV offloading to the machine's memory keeps more (docs/residency.md), or a smaller budget.context.",
        )


def _fitting(pool: float, needed: float, context: int) -> int:
    return max(0, int(context * max(pool, 0) / needed)) // 1024 * 1024


def small_cards(situation: Situation) -> Iterator[Finding]:
    """Limits that are known on 24 GB cards: above them a prefill of about 180K tokens runs out of memory."""
    cards = situation.gpus[: situation.parallel]
    if situation.profile.kind != "gpu" or not cards or min(gpu.memory_gib for gpu in cards) > _SMALL_CARD_GIB:
        return
    severity: Severity = "error" if situation.context >= _LONG else "warning"
    share = float(situation.flags.get("gpu-memory-utilization") or 0.9)
    if share > 0.88 and not situation.flags.get("kv-cache-memory-bytes"):
        yield Finding(
            "small-cards",
            severity,
            f"gpu-memory-utilization is {share:g} on cards of {cards[0].memory_gib:.0f} GiB.",
            "Above 0.88 a prefill of about 180,000 tokens runs out of memory and ends the engine.",
            "Set it to 0.87, which is known to work.",
        )
    if situation.batch >= 4096:
        yield Finding(
            "small-cards",
            severity,
            f"max-num-batched-tokens is {situation.batch} on cards of {cards[0].memory_gib:.0f} GiB.",
            "From 4,096 on a prefill of about 180,000 tokens runs out of memory and ends the engine.",
            "Set it to 2048, which is known to work.",
        )


def offload(situation: Situation) -> Iterator[Finding]:
    """KV offloading: the allocator it does not bear, and whether the machine has the memory."""
    wanted = _offloaded(situation)
    if wanted is None:
        return
    if "expandable_segments:true" in situation.environment.get("PYTORCH_CUDA_ALLOC_CONF", "").lower():
        yield Finding(
            "offload",
            "error",
            "KV offloading is on together with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
            "A KV connector refuses that allocator: the engine would end while it starts.",
            'Set PYTORCH_CUDA_ALLOC_CONF = "" under [engine.env], or switch offloading off.',
        )
    if wanted and wanted * GIB > situation.host_memory * 0.8:
        yield Finding(
            "offload",
            "warning" if situation.custom else "error",
            f"KV offloading asks for {wanted:.0f} GiB of the machine's {situation.host_memory / GIB:.0f} GiB.",
            "The memory is pinned, so nothing of it can be swapped: the machine would stall.",
            "Offload less, or not at all.",
        )
    elif wanted and wanted < _OFFLOAD_PER_REPOSITORY_GIB:
        yield Finding(
            "offload",
            "warning",
            f"KV offloading is given {wanted:.0f} GiB.",
            "One repository of 190,000 tokens takes 20 GiB there, so a smaller store never gives one back whole.",
            "Give it 32 GiB for one repository, 48 for two.",
        )


def _offloaded(situation: Situation) -> float | None:
    """GiB to offload to; 0 if not known, None without offloading."""
    if "kv-offloading-size" in situation.flags:
        return float(situation.flags["kv-offloading-size"])
    if "kv-transfer-config" in situation.flags:
        return 0.0
    return None


def cpu_memory(situation: Situation) -> Iterator[Finding]:
    """On the CPU the KV cache and the weights come out of the machine's memory."""
    if situation.profile.kind != "cpu" or situation.model is None:
        return
    wanted = size_of_flag(situation.flags.get("kv-cache-memory-bytes")) + situation.model.size + 2 * GIB
    if wanted > situation.host_memory:
        yield Finding(
            "cpu-memory",
            "error",
            f"The engine takes about {wanted / GIB:.1f} GiB, and the machine has {situation.host_memory / GIB:.1f}.",
            "It would be killed for lack of memory while it loads.",
            "Lower kv-cache-memory-bytes, or use a smaller model.",
        )
