"""Every hazard as a change to the published deployment, the message it must give, and the guide's table of them.

`cd tests && python -m support.hazards` writes the table into docs/doctor.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from laguna_daemon.engine.checks import Finding, look
from support.laguna_configs import draft_config, quantised, target_config
from support.situations import GOOD, MAIN, OTHER_GOOD, TARGET, card, published

GUIDE = Path(__file__).parents[2] / "docs" / "doctor.md"
_BEGIN, _END = "<!-- hazards -->\n", "<!-- /hazards -->"

HAZARDS: list[tuple[str, dict[str, Any], str, str]] = [
    # 1. The draft must match the target's precision and revision.
    ("pair", {"revisions": (GOOD[0], OTHER_GOOD[1])}, "error", "that target goes with f6b32f4fb7ef.*accepts 0%"),
    ("pair", {"revisions": ("a" * 40, GOOD[1])}, "error", "that draft goes with 67dbeda456e6"),
    ("pair", {"revisions": ("a" * 40, "b" * 40)}, "warning", "a pair nobody has reported on"),
    ("pair", {"revisions": (None, None)}, "warning", "not known which revisions.*Watch the draft acceptance"),
    (
        "pair",
        {"repositories": (TARGET, "poolside/Laguna-S-2.1-DFlash")},
        "error",
        "made for another precision than the target",
    ),
    (
        "draft-layers",
        {"configs": (target_config(num_hidden_layers=40), draft_config())},
        "error",
        "layers it reads: 48",
    ),
    # 2. Pin revisions: main became a checkpoint that does not fit.
    ("pins", {"revisions": (MAIN, GOOD[1])}, "error", "99.7 GB mixed-precision.*engine download laguna-s-2.1-4x24gb"),
    ("pins", {"revisions": ("a" * 40, "b" * 40)}, "warning", "the profile pins 67dbeda456e6"),
    (
        "quantisation",
        {"configs": (target_config(quantization_config=quantised(4, 8)), draft_config())},
        "error",
        "4, 8 bits in its parts.*far more memory",
    ),
    (
        "quantisation",
        {"configs": (target_config(quantization_config=None), draft_config())},
        "error",
        "is not quantised",
    ),
    ("kv-memory", {"revisions": (MAIN, GOOD[1])}, "error", "leave 0.00 GiB per GPU.*load for minutes"),
    # 4. Depth and concurrency.
    (
        "depth",
        {"flags": {"speculative-config": {"method": "dflash", "num_speculative_tokens": 15}}},
        "warning",
        "proposes 15 tokens.*7 was found best",
    ),
    ("depth", {"flags": {"max-num-seqs": 64}}, "warning", "Up to 64 requests.*275 against 503"),
    # 5. Thinking is decided explicitly.
    ("thinking", {"flags": {"default-chat-template-kwargs": False}}, "warning", "not told whether to think"),
    (
        "thinking",
        {"flags": {"default-chat-template-kwargs": '{"enable_thinking": false}'}},
        "warning",
        "enable_thinking False, the profile's default is True",
    ),
    # 6. Limits on 24 GB.
    ("small-cards", {"flags": {"gpu-memory-utilization": 0.9}}, "error", "Above 0.88.*Set it to 0.87"),
    ("small-cards", {"flags": {"max-num-batched-tokens": 4096}}, "error", "From 4,096 on.*Set it to 2048"),
    # 7. Expandable segments against offload.
    ("offload", {"flags": {"kv-offloading-size": 32}}, "error", "expandable_segments:True.*refuses that allocator"),
    (
        "offload",
        {"flags": {"kv-offloading-size": 120}, "environment": {"PYTORCH_CUDA_ALLOC_CONF": ""}},
        "error",
        "120 GiB of the machine's 128 GiB",
    ),
    (
        "offload",
        {"flags": {"kv-offloading-size": 8}, "environment": {"PYTORCH_CUDA_ALLOC_CONF": ""}},
        "warning",
        "takes 20 GiB there",
    ),
    # 8. vLLM versions and what changes in them.
    (
        "retention",
        {
            "flags": {"prefix-cache-retention-interval": 128},
            "configs": (target_config(layer_types=["full_attention"] * 48), draft_config()),
        },
        "error",
        "no layers with sliding windows.*refuses that after it has loaded",
    ),
    ("retention", {"packages": {"vllm": "0.29.0"}}, "warning", "only where an earlier request ended"),
    (
        "retention",
        {"environment": {"VLLM_PREFIX_CACHE_RETENTION_INTERVAL": "4096"}},
        "warning",
        "RETENTION_INTERVAL is 4096.*Remove it",
    ),
    ("transformers", {"packages": {"vllm": "0.31.0", "transformers": "5.14.1"}}, "error", "needs transformers 5.17"),
    ("vllm-version", {"packages": {"vllm": "0.33.0"}}, "warning", "vLLM 0.33.0; the profile.*min_p and logit_bias are"),
    ("vllm-version", {"packages": {"vllm": "0.22.1"}}, "warning", "older than anything this was tried with"),
    # 9. What a killed server leaves on the GPUs.
    (
        "free-memory",
        {"gpus": [card(n, free=2.0) for n in range(4)]},
        "warning",
        "2.0 of 24.0 GiB free.*killed.*nvidia-smi",
    ),
    # 10. Loose dependencies.
    (
        "drift",
        {"packages": {"vllm": "0.25.1", "xgrammar": "0.2.9", "apache-tvm-ffi": "0.1.9", "mcp": "2.3.0"}},
        "error",
        "xgrammar 0.2.9 beside apache-tvm-ffi 0.1.9.*mcp 2.3.0.*Use the locked engine",
    ),
    ("drift", {"packages": {"vllm": "0.25.1", "openai": "3.57.0"}}, "warning", "openai 3.57.0"),
    # The kernels of the experts.
    ("moe-backend", {"flags": {"moe-backend": "auto"}}, "error", "auto while a draft is in use.*marlin"),
    ("moe-backend", {"flags": {"moe-backend": False}}, "error", "auto while a draft is in use"),
    ("moe-backend", {"flags": {"moe-backend": "triton"}}, "error", "vLLM 0.25.1 refuses that"),
    ("moe-backend", {"environment": {"VLLM_USE_DEEP_GEMM": "1"}}, "warning", "VLLM_USE_DEEP_GEMM is not 0"),
    # The machine.
    ("gpus", {"gpus": []}, "error", "No NVIDIA GPU was found.*needs 4 GPUs of at least 23 GiB"),
    ("gpus", {"gpus": [card(), card(1)]}, "error", "Found 2 x NVIDIA GeForce RTX 3090 with 24 GiB"),
    ("driver", {"driver": "570.86.15", "managed": True}, "error", "driver is 570.86.15.*580 or later"),
    ("driver", {"driver": "570.86.15"}, "warning", "driver is 570.86.15"),
    (
        "driver",
        {"gpus": [card(n, name="NVIDIA TITAN RTX", capability=(7, 5)) for n in range(4)]},
        "error",
        "compute capability 7.5.*need 8.0",
    ),
    ("disk", {"configs": ({}, {}), "free_disk": 60_000_000_000}, "error", "take 85.0 GB.*60.0 GB are free.*do not fit"),
    ("disk", {"configs": ({}, {})}, "error", "Download them: laguna-daemon engine download laguna-s-2.1-4x24gb"),
    ("disk", {"free_disk": 500_000_000}, "warning", "Only 0.5 GB|Only 500 MB"),
    ("engine", {"python": None}, "error", "No engine is installed.*engine install gpu"),
    (
        "kv-memory",
        {"flags": {"max-model-len": 262_144}},
        "error",
        "a request of 262,144 tokens needs.*at most 21\\d,\\d+",
    ),
    (
        "architecture",
        {"configs": (target_config(max_position_embeddings=131_072), draft_config())},
        "error",
        "asked for is 204,800 tokens; the model was made for 131,072",
    ),
    (
        "architecture",
        {"configs": (target_config(architectures=["LlamaForCausalLM"]), draft_config())},
        "warning",
        "holds LlamaForCausalLM; the profile is made for LagunaForCausalLM",
    ),
]


def described(finding: Finding) -> str:
    """A finding as one text."""
    return f"{finding.severity}: {finding.what} {finding.why} | {finding.fix}"


def page() -> str:
    """The guide's table of all hazards."""
    lines = ["| check | | what is said | what to do |", "|---|---|---|---|"]
    for check, changes, _, _ in HAZARDS:
        finding = next(item for item in look(published(**changes)) if item.check == check)
        lines.append(f"| `{check}` | {finding.severity} | {finding.what} {finding.why} | {finding.fix} |")
    return _BEGIN + "\n".join(lines) + "\n" + _END


if __name__ == "__main__":
    text = GUIDE.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    GUIDE.write_text(before + page() + rest.partition(_END)[2], encoding="utf-8")
