"""Asking NVML: what it says, and all the ways in which there is nothing to ask."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from laguna_daemon.engine import gpus
from laguna_daemon.engine.gpus import FoundGpu, driver_version, find_gpus


class Library:
    """NVML as its header describes it, with two GPUs, the second of which cannot be asked."""

    def __init__(self, works: bool = True) -> None:
        self.works = works
        self.open = 0

    def nvmlInit_v2(self) -> int:
        self.open += self.works
        return 0 if self.works else 9

    def nvmlShutdown(self) -> int:
        self.open -= 1
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = 2
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Any) -> int:
        handle._obj.value = index + 1
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle: Any, memory: Any) -> int:
        memory._obj.total, memory._obj.free = 24 * 2**30, 23 * 2**30
        return 0 if handle.value == 1 else 999

    def nvmlDeviceGetName(self, handle: Any, name: Any, size: int) -> int:
        name.value = b"NVIDIA GeForce RTX 3090"
        return 0

    def nvmlDeviceGetCudaComputeCapability(self, handle: Any, major: Any, minor: Any) -> int:
        major._obj.value, minor._obj.value = 8, 6
        return 0

    def nvmlSystemGetDriverVersion(self, text: Any, size: int) -> int:
        text.value = b"580.65.06"
        return 0


def use(monkeypatch: pytest.MonkeyPatch, library: object) -> None:
    def load(name: str) -> object:
        assert name == "libnvidia-ml.so.1"
        if library is None:
            raise OSError("cannot open shared object file")
        return library

    monkeypatch.setattr(gpus.ctypes, "CDLL", load)


def test_what_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    use(monkeypatch, library)
    assert find_gpus() == (FoundGpu(0, "NVIDIA GeForce RTX 3090", 24.0, 23.0, (8, 6)),)
    assert driver_version() == "580.65.06"
    assert library.open == 0, "every session is closed"


@pytest.mark.parametrize("library", [None, Library(works=False)])
def test_no_driver_is_no_gpu(monkeypatch: pytest.MonkeyPatch, library: object) -> None:
    use(monkeypatch, library)
    assert find_gpus() == ()
    assert driver_version() == ""


def test_this_machine_can_be_asked() -> None:
    found = find_gpus()
    assert bool(found) == bool(driver_version())
    assert all(0 < gpu.free_gib <= gpu.memory_gib for gpu in found)
    assert ctypes.sizeof(gpus._Memory) == 24
