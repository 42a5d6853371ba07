"""Accounts of a prefix: the manifest, the reason for one path, the place where a cache broke."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict

from laguna_context import frames
from laguna_context.catalogue import Catalogue
from laguna_context.explaining import explain, relative_to
from laguna_context.journal import Journal
from laguna_context.listing import Selection
from laguna_context.manifest import File, Manifest, Why
from laguna_context.prompt import Budget, Prompt
from laguna_context.secrets import Finding

_NOT_SHOWN = {"path": "it is named, not shown", "folder": "it is counted in its folder, not named"}


def manifest(journal: Journal, catalogue: Catalogue, identity: str, budget: Budget, head: int) -> Manifest:
    """The account of a snapshot and its overlay; `head` counts the template's tokens before the first document."""
    snapshot = journal.snapshot
    sizes = {part.path: part.end - part.start for part in snapshot.parts}
    listing = sizes.pop(frames.LISTING_PATH, 0)
    behind: Counter[str] = Counter()
    for change in journal.overlay.changes:
        behind[change.path] += change.ids.size
    files = []
    findings: list[Finding] = []
    for path in sorted(catalogue.entries.keys() | sizes.keys() | (journal.seen.keys() - {frames.LISTING_PATH})):
        seen = journal.seen.get(path)
        known = catalogue.remembered(path)
        tier = _tier(journal, path)
        version = seen.version if seen is not None else ""
        files.append(File(path, tier, sizes.get(path, 0), behind[path], version, *_no_text(catalogue, path)))
        if known is not None and seen is not None:
            findings += known.findings
    return Manifest(
        root=str(catalogue.root),
        snapshot=snapshot.id,
        overlay_seq=journal.overlay.seq,
        identity=identity,
        files=tuple(files),
        findings=tuple(findings),
        left_out=dict(catalogue.left_out),
        skipped=dict(Counter(file.reason for file in files if file.reason)),
        tiers=dict(Counter(file.tier for file in files)),
        prefix_tokens=head + snapshot.ids.size,
        snapshot_tokens=snapshot.ids.size,
        overlay_tokens=journal.overlay.tokens,
        listing_tokens=listing,
        budget=asdict(budget),
    )


def _no_text(catalogue: Catalogue, path: str) -> tuple[str, str]:
    """Why a file has no text, as far as is known without opening it: reason and detail."""
    entry, known = catalogue.entries.get(path), catalogue.remembered(path)
    hidden = catalogue.hidden(path)
    if hidden is not None:
        return "secret", hidden
    if entry is not None and entry.kind != "file":
        return entry.kind, "listed, never followed" if entry.kind == "symlink" else "a repository of its own"
    return (known.skip, known.detail) if known is not None else ("", "")


def _tier(journal: Journal, path: str) -> str:
    seen = journal.seen.get(path)
    if seen is None:
        return journal.snapshot.tiers.get(path, "path")
    if not seen.digest:
        return "deleted"
    return "full" if journal.snapshot.part(path) is not None else "overlay"


def why(journal: Journal, catalogue: Catalogue, selection: Selection, path: str) -> Why:
    """Why `path` is shown, named or left out."""
    path = relative_to(catalogue.root, path) or path
    found = explain(catalogue.root, path, selection)
    listed = path in catalogue.entries
    tier = _tier(journal, path) if listed else ""
    part = journal.snapshot.part(path)
    reason = found.reason
    no_text, detail = _no_text(catalogue, path)
    if listed and no_text:
        reason = f"{no_text}: {detail}"
    elif not listed and found.included and (catalogue.root / path).is_dir():
        within = sum(name.startswith(f"{path}/") for name in catalogue.entries)
        reason = f"a folder: {within} of its files are listed; ask about one of them"
    elif tier in _NOT_SHOWN:
        reason = f"other files rank higher and fill the budget; {_NOT_SHOWN[tier]}"
    tokens = part.end - part.start if part is not None else 0
    return Why(path, found.included, tier, tokens, found.rule, found.source, found.line, reason)


def where_broke(cached_tokens: int, prompt: Prompt, block: int) -> str | None:
    """The first document of the prefix that lies behind what was cached, or None."""
    if cached_tokens + block > prompt.prefix_tokens:
        return None
    return next((span.path for span in prompt.documents if span.end > cached_tokens), None)


def usable_buffers(
    catalogue: Catalogue, selection: Selection, buffers: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Buffers that may be shown: of listed files, and of new files that no rule keeps out. Notes on the others."""
    usable: dict[str, str] = {}
    notes: list[str] = []
    for path, text in buffers.items():
        reason = _refused(catalogue, selection, path)
        if reason is None:
            usable[path] = text
        else:
            notes.append(f"The open file {path} was not used: {reason}.")
    return usable, notes


def _refused(catalogue: Catalogue, selection: Selection, path: str) -> str | None:
    """Why the text of an open file must not be shown, or None."""
    reason = catalogue.hidden(path)
    if reason is not None:
        return reason
    if path in catalogue.entries:
        return None
    found = explain(catalogue.root, path, selection)
    if not found.included and os.path.lexists(catalogue.root / path):
        return found.reason
    return None if found.included or not found.rule else found.reason
