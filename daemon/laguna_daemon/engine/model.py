"""A model's folder, read far enough to know what it is: never its weights."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from laguna_daemon.errors import EngineUnavailable


@dataclass(frozen=True)
class ModelFolder:
    """A checkpoint on disk.

    ``stop_token_ids`` are the ids that end an answer, from generation_config.json and config.json; ``context`` is
    the largest context the model was made for, in tokens.
    """

    path: Path
    name: str
    architecture: str
    context: int
    vocabulary: int
    stop_token_ids: tuple[int, ...]
    quantisation: str = ""


def open_model(path: Path, *, name: str = "", weights: bool = True, tokenizer: bool = True) -> ModelFolder:
    """Read a model folder; raises EngineUnavailable that says which part is missing or broken.

    With ``weights`` at least one weight file must be there and none may be empty. A draft needs no ``tokenizer``.
    """
    if not path.is_dir():
        raise EngineUnavailable(
            f"The model folder {path} does not exist, so the engine has nothing to load.",
            "Install the model (laguna-daemon engine install cpu), or name its folder in engine.model.",
        )
    config = _read(path / "config.json")
    if tokenizer and not (path / "tokenizer.json").is_file():
        raise _broken(path, "it has no tokenizer.json")
    if weights:
        _check_weights(path)
    text = config.get("text_config", config)
    return ModelFolder(
        path=path,
        name=name or path.name,
        architecture=str((config.get("architectures") or [""])[0]),
        context=int(text.get("max_position_embeddings") or 0),
        vocabulary=int(text.get("vocab_size") or 0),
        stop_token_ids=_stop_ids(path, config),
        quantisation=str((config.get("quantization_config") or {}).get("quant_method", "")),
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise _broken(path.parent, f"it has no {path.name}") from None
    except (OSError, ValueError) as error:
        raise _broken(path.parent, f"{path.name} cannot be read ({error})") from error
    if not isinstance(found, dict):
        raise _broken(path.parent, f"{path.name} is not an object")
    return found


def _check_weights(path: Path) -> None:
    index = path / "model.safetensors.index.json"
    if index.is_file():
        needed = {path / str(name) for name in _read(index).get("weight_map", {}).values()}
    else:
        needed = set(path.glob("*.safetensors")) or set(path.glob("*.bin"))
    if not needed:
        raise _broken(path, "it has no weights (*.safetensors)")
    for file in sorted(needed):
        if not file.is_file() or file.stat().st_size == 0:
            raise _broken(path, f"the weight file {file.name} is missing or empty")


def _stop_ids(path: Path, config: dict[str, Any]) -> tuple[int, ...]:
    generation = path / "generation_config.json"
    sources = [_read(generation) if generation.is_file() else {}, config]
    ids: dict[int, None] = {}
    for source in sources:
        found = source.get("eos_token_id")
        for item in found if isinstance(found, list) else [found]:
            if isinstance(item, int):
                ids[item] = None
    return tuple(ids)


def _broken(path: Path, why: str) -> EngineUnavailable:
    return EngineUnavailable(
        f"The model folder {path} is not usable: {why}.",
        "Install the model again (laguna-daemon engine install cpu), or name a whole folder in engine.model.",
    )
