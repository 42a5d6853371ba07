"""From profile and settings to argv and environment, and what is said when something is missing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from laguna_daemon.config import EngineSettings, Settings
from laguna_daemon.engine.launch import Launch, build_launch, render_flags
from laguna_daemon.engine.profile import load_profile
from laguna_daemon.errors import EngineUnavailable, LagunaError, UsageError


class Home:
    python = Path("/bin/sh")


def build(user: Path, profile: str = "cpu", home: Home | None = None, **engine: Any) -> Launch:
    return build_launch(
        load_profile(profile), Settings(engine=EngineSettings(**engine)), home or Home(), user / "engine.sock"
    )


@pytest.fixture
def model(laguna_model: Path, tmp_path: Path) -> Path:
    """A model folder with something that looks like weights."""
    folder = tmp_path / "model"
    shutil.copytree(laguna_model, folder)
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def test_the_cpu_command_line(user: Path, model: Path) -> None:
    argv = build(user, model=model).argv
    assert argv[:3] == ("/bin/sh", "-m", "vllm.entrypoints.openai.api_server")
    line = " ".join(argv)
    for flags in (
        f"--uds {user / 'engine.sock'}",
        f"--model {model}",
        "--dtype bfloat16",
        "--max-model-len 8192",
        "--enforce-eager",
        "--kv-cache-memory-bytes 1G",
        "--max-num-seqs 8",
        "--enable-prompt-tokens-details",
        "--disable-uvicorn-access-log",
    ):
        assert flags in line
    assert "--enable-log-requests" not in line


def test_the_environment_is_clean_and_silent(user: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONPATH", "VIRTUAL_ENV", "OPENAI_API_KEY", "HF_TOKEN", "http_proxy", "VLLM_USE_V1", "LAGUNA_X"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    env = build(user, model=model, env={"EXTRA": "1", "VLLM_LOGGING_LEVEL": "DEBUG"}).env
    assert not {
        "PYTHONPATH",
        "VIRTUAL_ENV",
        "OPENAI_API_KEY",
        "HF_TOKEN",
        "http_proxy",
        "VLLM_USE_V1",
        "LAGUNA_X",
    } & set(env)
    assert env["HF_HUB_OFFLINE"] == env["VLLM_NO_USAGE_STATS"] == env["DO_NOT_TRACK"] == "1"
    assert env["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert (env["EXTRA"], env["VLLM_LOGGING_LEVEL"]) == ("1", "DEBUG")
    assert env["VLLM_CACHE_ROOT"].startswith(str(user / "cache"))


def test_any_flag_can_be_added_changed_and_left_out(user: Path, model: Path) -> None:
    args = {"max_model_len": 4096, "--swap-space": 2, "enforce-eager": False, "hf-overrides": {"a": 1}}
    launch = build(user, model=model, args=args)
    line = " ".join(launch.argv)
    assert "--max-model-len 4096" in line
    assert "--swap-space 2" in line
    assert '--hf-overrides {"a":1}' in line
    assert "enforce-eager" not in line
    assert launch.traits.context == 4096


@pytest.mark.parametrize("flag", ["uds", "host", "port", "model", "api-key", "enable_log_requests"])
def test_flags_that_are_the_daemons_own(user: Path, model: Path, flag: str) -> None:
    with pytest.raises(UsageError, match="set by the daemon itself"):
        build(user, model=model, args={flag: "x"})


def test_rendering_of_values() -> None:
    flags = {"on": True, "off": False, "none": None, "n": 3, "list": ["a", "b"], "table": {"k": [1, True]}}
    assert render_flags(flags) == ["--on", "--n", "3", "--list", "a", "b", "--table", '{"k":[1,true]}']


def test_speculation_is_known_to_the_rules(user: Path, model: Path) -> None:
    ngram = {"speculative-config": {"method": "ngram", "num_speculative_tokens": 4}}
    assert build(user, model=model, args=ngram).traits.speculation == "ngram"
    as_text = {"speculative-config": json.dumps(ngram["speculative-config"])}
    assert build(user, model=model, args=as_text).traits.speculation == "ngram"
    assert build(user, "laguna-s-2.1-4x24gb", model=model, draft=model).traits.speculation == "dflash"
    assert build(user, model=model).traits.speculation == ""


def test_stop_tokens_come_from_the_model(user: Path, model: Path) -> None:
    launch = build(user, model=model)
    assert launch.sampling(10).stop_token_ids == (2, 24)
    (model / "generation_config.json").write_text('{"eos_token_id": [24, 7]}')
    sampling = build(user, model=model).sampling(10, seed=3)
    assert sampling.stop_token_ids == (24, 7, 2)
    assert (sampling.temperature, sampling.top_p, sampling.seed) == (0.2, 0.9, 3)


def test_a_command_of_ones_own_needs_no_engine_and_no_weights(user: Path, laguna_model: Path) -> None:
    launch = build_launch(
        load_profile("cpu"),
        Settings(engine=EngineSettings(command=["my", "engine"], model=laguna_model)),
        None,
        user / "engine.sock",
    )
    assert launch.argv[:3] == ("my", "engine", "--uds")


def test_remote(user: Path, laguna_model: Path) -> None:
    launch = build(user, "remote", model=laguna_model, url="http://box:8000/v1", api_key="k")
    assert (launch.argv, launch.url, launch.api_key) == ((), "http://box:8000/v1", "k")
    with pytest.raises(EngineUnavailable, match="no address is set"):
        build(user, "remote", model=laguna_model)


def test_no_engine(user: Path, model: Path) -> None:
    with pytest.raises(EngineUnavailable) as caught:
        build_launch(load_profile("cpu"), Settings(engine=EngineSettings(model=model)), None, user / "engine.sock")
    assert "laguna-daemon engine install cpu" in caught.value.advice
    assert caught.value.exit_code == 4
    with pytest.raises(EngineUnavailable, match="does not exist"):
        build(user, model=model, python="/nowhere/python")


def break_model(model: Path, how: str) -> None:
    match how:
        case "gone":
            shutil.rmtree(model)
        case "no config":
            (model / "config.json").unlink()
        case "cut config":
            (model / "config.json").write_text('{"archi')
        case "list config":
            (model / "config.json").write_text("[]")
        case "no tokenizer":
            (model / "tokenizer.json").unlink()
        case "no weights":
            (model / "model.safetensors").unlink()
        case "empty weights":
            (model / "model.safetensors").write_bytes(b"")
        case "missing shard":
            index = {"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}
            (model / "model.safetensors.index.json").write_text(json.dumps(index))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("gone", "does not exist"),
        ("no config", "no config.json"),
        ("cut config", "config.json cannot be read"),
        ("list config", "not an object"),
        ("no tokenizer", "no tokenizer.json"),
        ("no weights", "no weights"),
        ("empty weights", "model.safetensors is missing or empty"),
        ("missing shard", "model-2.safetensors is missing"),
    ],
)
def test_a_model_folder_that_is_missing_or_broken(user: Path, model: Path, how: str, message: str) -> None:
    break_model(model, how)
    with pytest.raises(EngineUnavailable, match=message) as caught:
        build(user, model=model)
    assert caught.value.advice


def test_errors_name_the_profiles_model_by_default(user: Path) -> None:
    with pytest.raises(LagunaError, match="SmolLM2-135M-Instruct"):
        build(user)
