"""What the model was shown: every listed file with its tier, tokens and version; every skip with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from laguna_context.secrets import Finding


@dataclass(frozen=True, slots=True)
class File:
    """`tier`: full, path, folder, or overlay for a file the snapshot does not hold. `tokens`: of its document and of
    its overlay entries. `version`: sha256 of the bytes the model saw, empty where it saw none. `reason`: why a file
    has no text."""

    path: str
    tier: str
    tokens: int
    overlay_tokens: int
    version: str
    reason: str
    detail: str


@dataclass(frozen=True)
class Manifest:
    """The account of a prefix. `left_out`: paths that are not listed at all, by reason."""

    root: str
    snapshot: str
    overlay_seq: int
    identity: str
    files: tuple[File, ...]
    findings: tuple[Finding, ...]
    left_out: Mapping[str, int]
    skipped: Mapping[str, int]
    tiers: Mapping[str, int]
    prefix_tokens: int
    snapshot_tokens: int
    overlay_tokens: int
    listing_tokens: int
    budget: Mapping[str, int]

    def as_dict(self) -> dict[str, Any]:
        """As plain objects, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Why:
    """Why one path is in the prompt or is not. `rule`, `source`, `line` name the deciding rule where there is one."""

    path: str
    included: bool
    tier: str
    tokens: int
    rule: str
    source: str
    line: int
    reason: str
