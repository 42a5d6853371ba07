"""Turn a Llama-architecture GGUF into a folder that vLLM loads.

Run by the engine's own Python as a script: ``python convert.py MODEL.gguf FOLDER``. It needs torch,
transformers, gguf and accelerate, none of which the daemon has, so it imports nothing of ours and nothing of
ours imports it.

Progress goes to stdout, one ``step DONE/TOTAL TEXT`` line a step. Exit status 0 means that every file was
written and read back; anything else means that FOLDER must not be used.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any

STEPS = 4
CONTROL = 3  # token_type of a control token in the GGUF specification
SAMPLE = "def area(r):\n\treturn 3.14159 * r**2  # 2026\n"
WEIGHTS = "model.safetensors"


def step(number: int, text: str) -> None:
    print(f"step {number}/{STEPS} {text}", flush=True)


def read_fields(gguf_file: Path) -> dict[str, Any]:
    """Metadata of the GGUF: key -> plain Python value."""
    from gguf import GGUFReader  # type: ignore[import-not-found]

    return {key: field.contents() for key, field in GGUFReader(gguf_file).fields.items()}


def write_tokenizer(fields: dict[str, Any], folder: Path) -> None:
    """tokenizer.json and tokenizer_config.json with the pre-tokenizer that the model was trained with.

    A GGUF names its pre-tokenizer instead of spelling it. "smollm" means: every digit alone, then byte-level
    with the GPT-2 split (llama.cpp, LLAMA_VOCAB_PRE_TYPE_SMOLLM; the same as the upstream tokenizer.json). Read
    as plain byte-level, "2026" could become one token that the model never saw in training.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    if fields["tokenizer.ggml.model"] != "gpt2" or fields.get("tokenizer.ggml.pre") != "smollm":
        raise SystemExit("convert: only byte-level BPE with the 'smollm' pre-tokenizer is known")
    tokens: list[str] = fields["tokenizer.ggml.tokens"]
    merges = [tuple(pair.split(" ")) for pair in fields["tokenizer.ggml.merges"]]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, fuse_unk=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = fields["tokenizer.ggml.token_type"]
    control = [token for token, kind in zip(tokens, kinds, strict=True) if kind == CONTROL]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    tokenizer.save(str(folder / "tokenizer.json"))

    def name(role: str) -> str:
        index: int = fields[f"tokenizer.ggml.{role}_token_id"]
        return tokens[index]

    settings = {
        # The generic class takes tokenizer.json as it is; a model-specific one may rebuild the pre-tokenizer.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_prefix_space": False,
        "bos_token": name("bos"),
        "eos_token": name("eos"),
        "pad_token": name("padding"),
        "unk_token": name("unknown"),
        "additional_special_tokens": [name("bos"), name("eos")],
        "clean_up_tokenization_spaces": False,
        "model_max_length": fields["llama.context_length"],
        "chat_template": fields["tokenizer.chat_template"],
    }
    write_json(folder / "tokenizer_config.json", settings)


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_weights(gguf_file: Path, fields: dict[str, Any], folder: Path) -> None:
    """config.json, generation_config.json and the weights, dequantised to bfloat16."""
    import torch  # type: ignore[import-not-found]
    from transformers import (  # type: ignore[import-not-found]
        AutoModelForCausalLM,
        GenerationConfig,
        GgufConfig,
    )

    model = AutoModelForCausalLM.from_pretrained(
        str(gguf_file.parent),
        gguf_file=gguf_file.name,
        quantization_config=GgufConfig(dequantize=True),
        dtype=torch.bfloat16,
        local_files_only=True,
    )
    config = model.config
    # Left in place, vLLM takes the dense weights for a GGUF checkpoint and refuses them.
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    end, begin, pad = (fields[f"tokenizer.ggml.{role}_token_id"] for role in ("eos", "bos", "padding"))
    config.architectures = ["LlamaForCausalLM"]
    config.bos_token_id, config.eos_token_id, config.pad_token_id = begin, end, pad
    # The end of a turn, and the end of a document for a prompt that is not a chat.
    ends = sorted({end, fields["tokenizer.ggml.unknown_token_id"]}, reverse=True)
    model.generation_config = GenerationConfig(bos_token_id=begin, eos_token_id=ends, pad_token_id=pad)
    model.save_pretrained(str(folder), safe_serialization=True)


def verify(fields: dict[str, Any], folder: Path) -> None:
    """Read everything back as the engine will; SystemExit with the reason when something is off."""
    from safetensors import safe_open  # type: ignore[import-not-found]
    from tokenizers import Tokenizer
    from transformers import AutoConfig, AutoTokenizer

    config = AutoConfig.from_pretrained(str(folder), local_files_only=True)
    if getattr(config, "quantization_config", None) is not None:
        raise SystemExit("convert: config.json still claims a quantised checkpoint")
    with safe_open(str(folder / WEIGHTS), framework="pt") as weights:
        shape = weights.get_slice("model.embed_tokens.weight").get_shape()
        layers = {key.split(".")[2] for key in weights.keys() if key.startswith("model.layers.")}  # noqa: SIM118
    if list(shape) != [config.vocab_size, config.hidden_size] or len(layers) != config.num_hidden_layers:
        raise SystemExit(f"convert: the weights do not fit config.json: {shape}, {len(layers)} layers")
    plain = Tokenizer.from_file(str(folder / "tokenizer.json"))
    if plain.get_vocab_size() != config.vocab_size:
        raise SystemExit(f"convert: {plain.get_vocab_size()} tokens for {config.vocab_size} embeddings")
    ids = plain.encode(SAMPLE).ids
    digits = [token for token in plain.encode("in 2026").tokens if token.strip("Ġ").isdigit()]
    if plain.decode(ids) != SAMPLE or digits != ["2", "0", "2", "6"]:
        raise SystemExit("convert: the tokenizer does not give back its own text")
    loaded = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    if loaded(SAMPLE)["input_ids"] != ids:
        raise SystemExit("convert: transformers reads another tokenizer out of the folder")
    chat = loaded.apply_chat_template([{"role": "user", "content": "hi"}], add_generation_prompt=True, tokenize=False)
    opening = fields["tokenizer.ggml.tokens"][fields["tokenizer.ggml.bos_token_id"]]
    if not chat.startswith(opening) or not chat.endswith(f"{opening}assistant\n"):
        raise SystemExit(f"convert: unexpected chat template: {chat!r}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Convert a GGUF model into a folder that vLLM loads.")
    parser.add_argument("gguf", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    step(1, "reading the metadata")
    fields = read_fields(arguments.gguf)
    step(2, "writing the tokenizer")
    write_tokenizer(fields, arguments.folder)
    step(3, "converting the weights to bfloat16")
    write_weights(arguments.gguf, fields, arguments.folder)
    step(4, "reading it all back")
    verify(fields, arguments.folder)


if __name__ == "__main__":
    main()
