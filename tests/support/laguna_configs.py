"""config.json of Laguna S 2.1 INT4 and of its draft, as far as the checks read them. Source: the public model cards."""

from __future__ import annotations

from typing import Any


def target_config(**changes: Any) -> dict[str, Any]:
    """48 layers, every fourth of full attention, the others with windows of 512 tokens."""
    config = {
        "architectures": ["LagunaForCausalLM"],
        "num_hidden_layers": 48,
        "layer_types": ["sliding_attention" if layer % 4 else "full_attention" for layer in range(48)],
        "sliding_window": 512,
        "num_attention_heads": 48,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "hidden_size": 3072,
        "num_experts": 256,
        "vocab_size": 100_352,
        "max_position_embeddings": 262_144,
        "quantization_config": quantised(4),
    }
    return {**config, **changes}


def draft_config(**changes: Any) -> dict[str, Any]:
    """Six layers that read a target of 48."""
    config = {
        "architectures": ["DFlashLagunaForCausalLM"],
        "num_hidden_layers": 6,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "hidden_size": 3072,
        "vocab_size": 100_352,
        "dflash_config": {"num_target_layers": 48},
    }
    return {**config, **changes}


def quantised(*bits: int) -> dict[str, Any]:
    """A compressed-tensors section with a group for each width."""
    groups = {f"group_{number}": {"weights": {"num_bits": width}} for number, width in enumerate(bits)}
    return {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": groups}
