"""How the model is served: expert kernels, draft depth, thinking, sampling defaults."""

from __future__ import annotations

from collections.abc import Iterator

from laguna_daemon.engine.checks.finding import Finding
from laguna_daemon.engine.checks.situation import Situation, table

_BEST_DEPTH = 7
_LOSING_SEQUENCES = 8


def moe_backend(situation: Situation) -> Iterator[Finding]:
    """The kernels of the experts are never left to choose themselves where a draft reads along."""
    if situation.profile.kind != "gpu":
        return
    backend = str(situation.flags.get("moe-backend", "auto"))
    experts = situation.model is not None and bool(situation.model.config.get("num_experts"))
    if (
        situation.speculation
        and backend == "auto"
        and (experts or situation.model is None or not situation.model.there)
    ):
        yield Finding(
            "moe-backend",
            "error",
            "moe-backend is auto while a draft is in use.",
            "The default DeepGEMM kernels do not work with the draft's path: answers break or the engine ends.",
            'Set moe-backend = "marlin" for INT4, "triton" for BF16 and FP8 checkpoints.',
        )
    if backend == "triton" and _int4(situation) and (0, 0) < situation.vllm < (0, 32):
        yield Finding(
            "moe-backend",
            "error",
            "moe-backend is triton for an INT4 checkpoint.",
            f"vLLM {_dotted(situation.vllm)} refuses that; 0.32 is the first to take it.",
            'Set moe-backend = "marlin".',
        )
    if situation.speculation and situation.environment.get("VLLM_USE_DEEP_GEMM", "1") != "0" and experts:
        yield Finding(
            "moe-backend",
            "warning",
            "VLLM_USE_DEEP_GEMM is not 0 while a draft is in use.",
            "The recipe switches it off: DeepGEMM's kernels do not work with the draft's path.",
            'Set VLLM_USE_DEEP_GEMM = "0" under [engine.env].',
        )


def depth(situation: Situation) -> Iterator[Finding]:
    """More draft tokens than are ever accepted cost time; many requests at once make any draft a loss."""
    speculation = situation.speculation
    if speculation.get("method") != "dflash":
        return
    tokens = int(speculation.get("num_speculative_tokens") or 0)
    if tokens > _BEST_DEPTH:
        yield Finding(
            "depth",
            "warning",
            f"The draft proposes {tokens} tokens a step.",
            "Past the fifth hardly any is accepted on 24 GB cards, and each costs time: 7 was found best.",
            "Set tokens = 7 under [draft].",
        )
    requests = int(situation.flags.get("max-num-seqs") or 256)
    if requests > _LOSING_SEQUENCES:
        yield Finding(
            "depth",
            "warning",
            f"Up to {requests} requests run at once beside a draft.",
            "With short prompts on four RTX 3090s the draft loses to the plain model at any number "
            "(275 against 503 tok/s at 64).",
            f"Set max-num-seqs to at most {_LOSING_SEQUENCES}, or use a profile without draft.",
        )


def thinking(situation: Situation) -> Iterator[Finding]:
    """Template and generation_config disagree about the default, so it is decided here, and in one way."""
    section = situation.profile.thinking
    if situation.profile.kind != "gpu" or not section.supported:
        return
    chosen = table(situation.flags.get("default-chat-template-kwargs")).get("enable_thinking")
    if chosen is None:
        yield Finding(
            "thinking",
            "warning",
            "The engine's own chat endpoint is not told whether to think.",
            "The template's default and generation_config's differ, so its answers may not be what the daemon gives; "
            "the daemon itself always decides.",
            "Set default-chat-template-kwargs = { enable_thinking = true } or false.",
        )
    elif bool(chosen) != section.default:
        yield Finding(
            "thinking",
            "warning",
            f"The engine's chat endpoint has enable_thinking {chosen}, the profile's default is {section.default}.",
            "The same question gets other answers there than from the daemon.",
            "Make default-chat-template-kwargs and [thinking] default agree.",
        )


def sampling(situation: Situation) -> Iterator[Finding]:
    """Defaults that this engine would refuse with every request."""
    if situation.profile.sampling.min_p and situation.speculation and situation.vllm < (0, 33):
        yield Finding(
            "sampling",
            "error",
            f"min_p is {situation.profile.sampling.min_p:g} by default while a draft is in use.",
            "vLLM before 0.33 refuses min_p and logit_bias under speculative decoding, so every question would fail.",
            "Set min_p = 0 under [sampling], or use a profile without draft.",
        )


def _int4(situation: Situation) -> bool:
    config = situation.model.config.get("quantization_config") if situation.model else None
    groups = ((config or {}).get("config_groups") or {}).values()
    return any((group.get("weights") or {}).get("num_bits") == 4 for group in groups)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
