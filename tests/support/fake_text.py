"""What a fake engine says: tokens and templates of a real model folder, answers from a script."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import jinja2
import jinja2.sandbox
from tokenizers import Tokenizer


class Model:
    """Tokenizer, template and stop ids of a model folder."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        config = _json(folder / "config.json")
        generation = _json(folder / "generation_config.json")
        eos = generation.get("eos_token_id", config.get("eos_token_id"))
        self.eos = tuple(eos) if isinstance(eos, list) else (eos,)
        self.vocabulary = int(config["vocab_size"])
        self.context = int(config.get("max_position_embeddings") or 2048)
        self._settings = _json(folder / "tokenizer_config.json")
        template = folder / "chat_template.jinja"
        self._template = template.read_text() if template.is_file() else self._settings.get("chat_template")
        heads = int(config.get("num_key_value_heads") or config.get("num_attention_heads") or 1)
        width = int(config.get("head_dim") or config.get("hidden_size", 64) // config.get("num_attention_heads", 1))
        self.kv_bytes = 4 * heads * width * int(config.get("num_hidden_layers", 1))  # 16-bit keys and values

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Sequence[int], *, special: bool = False) -> str:
        return self.tokenizer.decode(list(ids), skip_special_tokens=not special)

    def chat(self, messages: Sequence[Mapping[str, Any]], generation_prompt: bool, **options: Any) -> list[int]:
        """Ids of a rendered chat, as transformers renders it."""
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.filters["tojson"] = lambda value, **kw: json.dumps(value, ensure_ascii=False, **kw)
        environment.globals["raise_exception"] = _raise
        environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
        special = {name: _text(self._settings.get(name)) for name in ("bos_token", "eos_token", "pad_token")}
        text = environment.from_string(self._template).render(
            messages=list(messages), add_generation_prompt=generation_prompt, **special, **options
        )
        return self.encode(text)


class Script:
    """Answers by what the prompt says: `[{"when": "substring", "answer": "text"}, ...]`.

    The rule whose text stands last in the prompt answers; without one, a sentence with the prompt's length and
    digest. A rule may also have `finish` ("stop" or "length"), `delay` (seconds before the first token),
    `crash` (SIGKILL) or `wedge` (true: after the first token).
    """

    def __init__(self, source: Path | None = None) -> None:
        self.rules: list[dict[str, Any]] = []
        for file in sorted(source.glob("*.json")) if source and source.is_dir() else [source]:
            if file:
                self.rules += json.loads(file.read_text(encoding="utf-8"))

    def rule(self, prompt: str, ids: Sequence[int]) -> dict[str, Any]:
        found = [(prompt.rfind(rule["when"]), rule) for rule in self.rules if rule["when"] in prompt]
        if found:
            return max(found, key=lambda item: item[0])[1]
        digest = hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest()[:8]
        return {"answer": f"The prompt has {len(ids)} tokens and the digest {digest}."}


class Detokenizer:
    """Text as ids arrive; an incomplete character waits for its end."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._ids: list[int] = []
        self._said = ""

    def add(self, ids: Sequence[int], *, last: bool = False) -> str:
        self._ids += ids
        text = self._model.decode(self._ids)
        if text.endswith("\ufffd") and not last:
            return ""
        new = text[len(self._said) :]
        self._said = text
        return new


def _json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _text(value: Any) -> str:
    return value.get("content", "") if isinstance(value, dict) else value or ""


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)
