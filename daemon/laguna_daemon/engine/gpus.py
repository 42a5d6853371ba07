"""The GPUs of this machine, asked of NVIDIA's management library; no GPU and no driver are the same answer: none.

Source: NVML API reference, https://docs.nvidia.com/deploy/nvml-api/
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from dataclasses import dataclass

_LIBRARY = "libnvidia-ml.so.1"
_NAME_BYTES = 96


@dataclass(frozen=True, slots=True)
class FoundGpu:
    """One GPU: memory in GiB, ``capability`` as (major, minor), ``free_gib`` at the time of asking."""

    index: int
    name: str
    memory_gib: float
    free_gib: float
    capability: tuple[int, int]


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


def find_gpus() -> tuple[FoundGpu, ...]:
    """All GPUs that NVML lists, in its order."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return ()
    with _session(library) as works:
        if not works:
            return ()
        count = ctypes.c_uint()
        if library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
            return ()
        found = (_describe(library, index) for index in range(count.value))
        return tuple(gpu for gpu in found if gpu is not None)


def driver_version() -> str:
    """The NVIDIA driver's version, empty without one."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return ""
    with _session(library) as works:
        text = ctypes.create_string_buffer(_NAME_BYTES)
        if not works or library.nvmlSystemGetDriverVersion(text, _NAME_BYTES) != 0:
            return ""
        return text.value.decode("ascii", "replace")


@contextlib.contextmanager
def _session(library: ctypes.CDLL) -> Iterator[bool]:
    works = library.nvmlInit_v2() == 0
    try:
        yield works
    finally:
        if works:
            library.nvmlShutdown()


def _describe(library: ctypes.CDLL, index: int) -> FoundGpu | None:
    handle = ctypes.c_void_p()
    memory = _Memory()
    name = ctypes.create_string_buffer(_NAME_BYTES)
    major, minor = ctypes.c_int(), ctypes.c_int()
    failed = (
        library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle))
        or library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
        or library.nvmlDeviceGetName(handle, name, _NAME_BYTES)
        or library.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor))
    )
    if failed:
        return None
    return FoundGpu(
        index=index,
        name=name.value.decode("utf-8", "replace"),
        memory_gib=memory.total / 2**30,
        free_gib=memory.free / 2**30,
        capability=(major.value, minor.value),
    )
