"""Model folders of Laguna S 2.1 INT4 and its DFlash draft that hold a config.json and nothing else.

vLLM builds the full-size model from them with `load_format="dummy"`: memory, times and cache hits are those of the
real checkpoint, text and draft acceptance are not. Sources of the figures: the config.json files of
`poolside/Laguna-S-2.1-INT4` and `poolside/Laguna-S-2.1-DFlash-INT4`, and their model cards.

usage: laguna_config.py FOLDER
"""

import json
import sys
from pathlib import Path
from typing import Any

LAYERS = 48
WINDOW = 512  # tokens a sliding-window layer looks back
GLOBAL_EVERY = 4  # one layer of full attention, then three of sliding windows
DRAFT_LAYERS = 6
DRAFT_READS = (1, 10, 19, 29, 38, 47)  # the target's layers whose hidden states the draft reads

SHARED: dict[str, Any] = {
    "model_type": "laguna",
    "torch_dtype": "bfloat16",
    "hidden_size": 3072,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "sliding_window": WINDOW,
    "intermediate_size": 12_288,
    "moe_intermediate_size": 1024,
    "gating": "per-head",
    "rms_norm_eps": 1e-6,
    "vocab_size": 100_352,
    "tie_word_embeddings": False,
    "max_position_embeddings": 262_144,
    "bos_token_id": 2,
    "eos_token_id": [2, 24],
    "pad_token_id": 9,
}

# Four-bit weights in groups of 32; attention, the shared expert and the dense first layer stay in bfloat16.
INT4: dict[str, Any] = {
    "quant_method": "compressed-tensors",
    "format": "pack-quantized",
    "quantization_status": "compressed",
    "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_expert.*", "re:.*layers\\.0\\.mlp.*"],
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "input_activations": None,
            "output_activations": None,
            "weights": {
                "num_bits": 4,
                "type": "int",
                "symmetric": True,
                "strategy": "group",
                "group_size": 32,
                "dynamic": False,
            },
        }
    },
}


def target() -> dict[str, Any]:
    """The config.json of the quantised target: 12 global layers, 36 of sliding windows, 256 experts."""
    kinds = ["sliding_attention" if layer % GLOBAL_EVERY else "full_attention" for layer in range(LAYERS)]
    heads = [48 if kind == "full_attention" else 72 for kind in kinds]
    return SHARED | {
        "architectures": ["LagunaForCausalLM"],
        "num_hidden_layers": LAYERS,
        "layer_types": kinds,
        "num_attention_heads": 48,
        "num_attention_heads_per_layer": heads,
        "mlp_only_layers": [0],
        "num_experts": 256,
        "num_experts_per_tok": 10,
        "shared_expert_intermediate_size": 1024,
        "norm_topk_prob": True,
        "moe_routed_scaling_factor": 2.5,
        "partial_rotary_factor": 0.5,
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 500_000.0,
            "factor": 32.0,
            "original_max_position_embeddings": 8192,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
        },
        "swa_rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "partial_rotary_factor": 1.0,
        },
        "quantization_config": INT4,
    }


def draft() -> dict[str, Any]:
    """The config.json of the DFlash draft: six dense layers that read the target's hidden states."""
    rope = {"rope_type": "default", "rope_theta": 500_000.0}
    return SHARED | {
        "architectures": ["DFlashLagunaForCausalLM"],
        "num_hidden_layers": DRAFT_LAYERS,
        "layer_types": ["sliding_attention"] * DRAFT_LAYERS,
        "num_attention_heads": 72,
        "num_attention_heads_per_layer": [72] * DRAFT_LAYERS,
        "mlp_only_layers": list(range(DRAFT_LAYERS)),
        "num_experts": 0,
        "num_experts_per_tok": 0,
        "shared_expert_intermediate_size": 0,
        "draft_vocab_size": SHARED["vocab_size"],
        "rope_parameters": rope,
        "swa_rope_parameters": rope | {"partial_rotary_factor": 1.0},
        "block_size": 16,
        "dflash_config": {
            "block_size": 16,
            "mask_token_id": 12,
            "num_target_layers": LAYERS,
            "target_layer_ids": list(DRAFT_READS),
            "causal": True,
        },
        "eagle_aux_hidden_state_layer_ids": [layer + 1 for layer in DRAFT_READS],
    }


def write(folder: Path) -> tuple[Path, Path]:
    """Write both model folders below `folder`; returns target and draft."""
    target_folder, draft_folder = folder / "Laguna-S-2.1-INT4", folder / "Laguna-S-2.1-DFlash-INT4"
    for model, config in ((target_folder, target()), (draft_folder, draft())):
        model.mkdir(parents=True, exist_ok=True)
        (model / "config.json").write_text(json.dumps(config, indent=1))
    return target_folder, draft_folder


if __name__ == "__main__":
    write(Path(sys.argv[1]))
