"""Checkpoints of Laguna S 2.1 whose behaviour is publicly known. Sources: model cards and recipes of 2026."""

from __future__ import annotations

GOOD_PAIRS = {
    "67dbeda456e68139f281c40831f9d12049d8fc11": "f6b32f4fb7ef2fb2ad481bb4c05433a2bf8b0ed1",
    "4bbfc285f2f8b3b6b526274c133b7b17aae6c8cb": "5e07c246915c86dc6920fead03d019989224f2ba",
}
"""Revision of Laguna-S-2.1-INT4 -> revision of Laguna-S-2.1-DFlash-INT4 that was made for it."""

MIXED_PRECISION = "3879c9fd"
"""Start of the revision that the INT4 repository's main branch became: 99.7 GB, without scales for the KV cache."""

MEMORY_GIB = {
    "Laguna-S-2.1-INT4": 67.9,
    "Laguna-S-2.1-DFlash-INT4": 2.1,
}
"""Loaded weights: 17.5 GiB on each of four GPUs, of which the draft is 2.1 GiB in all."""
MIXED_GIB = 92.9

DISK_BYTES = {
    "Laguna-S-2.1-INT4": 82_700_000_000,
    "Laguna-S-2.1-DFlash-INT4": 2_300_000_000,
}
"""About 85 GB for the pair."""


def precision(repository: str) -> str:
    """The precision that a repository's name ends in (``INT4``, ``FP8`` ...), empty for an unquantised one."""
    last = repository.rpartition("-")[2].upper()
    return last if last in ("INT4", "INT8", "FP8", "NVFP4", "MXFP4", "FP4", "AWQ", "GPTQ") else ""
