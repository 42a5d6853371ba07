"""What the model has seen, against what the tree is now: the difference becomes overlay entries."""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from laguna_context import frames, overlay
from laguna_context.catalogue import Catalogue
from laguna_context.overlay import Change, Overlay, Seen
from laguna_context.packing import Tier
from laguna_context.snapshot import Snapshot, listing_text
from laguna_context.tokens import Tokenizer

_FOLDER_LINE = re.compile(r"^(?P<folder>.*)/ \(\d+ files\)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Now:
    """What a path is at this moment. `digest` is empty where it has no text, and `reason` then says why; `text` is None
    where it was not needed yet."""

    digest: str
    text: str | None = None
    version: str = ""
    unsaved: bool = False
    reason: str = ""
    listed: bool = True


class Journal:
    """One snapshot, the overlay behind it, and what the model therefore knows of each file.

    `lineage` names this overlay: a compaction that keeps the snapshot and writes the overlay anew makes another.
    `carried`: tokens at the overlay's start that a compaction put there and that the snapshot's budget holds.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        tokenizer: Tokenizer,
        snapshot: Snapshot,
        lineage: str | None = None,
        carried: int = 0,
    ) -> None:
        self.lineage = lineage or uuid.uuid4().hex
        self.carried = carried
        self.snapshot = snapshot
        self.overlay = Overlay()
        self._catalogue = catalogue
        self._tokenizer = tokenizer
        self.seen: dict[str, Seen] = {
            part.path: Seen(part.digest, part.id, None, part.version) for part in snapshot.parts
        }
        self._parts = {part.path: part for part in snapshot.parts}

    def name_only(self, paths: Iterable[str]) -> None:
        """From here on the listing names these paths, which the snapshot does not know."""
        tiers: dict[str, Tier] = dict.fromkeys(paths, "path")
        if tiers:
            self.snapshot = replace(self.snapshot, tiers={**self.snapshot.tiers, **tiers})

    def apply(self, change: Change) -> None:
        """Append an entry: from here on the model knows it."""
        if change.kind == "renamed":
            before = self.seen[change.path]
            self.seen[change.to] = replace(before, text=self.text(change.path))
        self.seen[change.path] = change.seen
        self.overlay.append(change)

    def text(self, path: str) -> str | None:
        """The text of `path` as the model last saw it, or None."""
        seen = self.seen.get(path)
        if seen is None or not seen.digest:
            return None
        if seen.text is not None:
            return seen.text
        part = self._parts.get(path)
        return self.snapshot.text(part, self._tokenizer) if part is not None else None

    def shown_by_overlay(self) -> set[str]:
        """Paths whose text the model has from the overlay alone."""
        return {path for path, seen in self.seen.items() if seen.digest and path not in self._parts}

    def unsaved(self) -> set[str]:
        """Paths of which the model last saw an unsaved buffer."""
        return {path for path, seen in self.seen.items() if seen.unsaved}

    def now(self, path: str, buffers: Mapping[str, str]) -> Now:
        """What `path` is now; a buffer beats the disk."""
        listed = path in self._catalogue.entries
        info = self._catalogue.info(path) if listed else None
        if path in buffers and self._catalogue.hidden(path) is None:
            text = self._catalogue.clean(path, buffers[path])
            same = info is not None and info.digest == text.digest
            return Now(text.digest, text.text, info.version if info and same else "", not same, listed=listed)
        if info is None:
            return Now("", listed=False)
        if info.skip and not info.digest:
            return Now("", reason=info.detail or info.skip)
        return Now(info.digest, None, info.version)

    @property
    def fresh(self) -> int:
        """Tokens of overlay since the last compaction."""
        return self.overlay.tokens - self.carried

    def differences(
        self, pending: Iterable[str], buffers: Mapping[str, str], room: int, show: Collection[str] = ()
    ) -> list[Change] | None:
        """The entries that bring the model up to date on these paths, or None if they exceed `room` tokens.

        `show`: paths that the snapshot only names and that are shown all the same.
        """
        show = {*show, *buffers}
        states = {path: self.now(path, buffers) for path in sorted({*pending, *buffers, *self.unsaved()})}
        moved = self._moves(states, buffers)
        out: list[Change] = []
        for path, now in states.items():
            if path in moved.values():
                continue
            seq = self.overlay.seq + len(out) + 1
            change = self._move(seq, path, moved[path]) if path in moved else self._change(seq, path, now, show)
            if change is not None:
                out.append(change)
                room -= change.ids.size
                if room < 0:
                    return None
        listing = self._listing_change(self.overlay.seq + len(out) + 1, states)
        if listing is not None:
            out.append(listing)
            room -= listing.ids.size
        return out if room >= 0 else None

    def _change(self, seq: int, path: str, now: Now, show: Collection[str]) -> Change | None:
        before = self.seen.get(path)
        if before is None or not before.digest:
            if not now.digest or (before is None and path in self.snapshot.tiers and path not in show):
                return None  # named, not shown: the listing speaks for it
        elif not now.digest:
            return overlay.delete(self._tokenizer, seq, path, before, now.reason)
        elif before.digest == now.digest:
            if before.unsaved and not now.unsaved:
                self.seen[path] = replace(before, unsaved=False, version=now.version)
            return None
        text = now.text
        if text is None:
            info, text = self._catalogue.text(path)
            now = replace(now, digest=info.digest, version=info.version)
            if info.skip and not info.digest:  # it changed again while it was looked at
                return self._change(seq, path, Now("", reason=info.detail or info.skip), show)
        known = None if before is None else replace(before, text=self.text(path))
        return overlay.write(
            self._tokenizer, seq, path, text, now.digest, before=known, version=now.version, unsaved=now.unsaved
        )

    def _moves(self, states: Mapping[str, Now], buffers: Mapping[str, str]) -> dict[str, str]:
        """Files that went, and reappeared elsewhere with the same text: old path -> new path."""
        arrived: dict[str, list[str]] = {}
        for path, now in states.items():
            before = self.seen.get(path)
            unknown = (before is None or not before.digest) and path not in self.snapshot.tiers
            if now.digest and unknown and path not in buffers:
                arrived.setdefault(now.digest, []).append(path)
        out: dict[str, str] = {}
        for path, now in states.items():
            before = self.seen.get(path)
            if before is not None and before.digest and not now.digest and not now.listed:
                targets = arrived.get(before.digest)
                if targets and before.digest != frames.text_hash(""):
                    out[path] = targets.pop(0)
        return out

    def _move(self, seq: int, path: str, to: str) -> Change:
        return overlay.rename(self._tokenizer, seq, path, to, self.seen[path])

    # the listing of what is not shown ----------------------------------------------------------------------------

    def _listing_change(self, seq: int, states: Mapping[str, Now]) -> Change | None:
        if not any(self._listing_concerns(path, now) for path, now in states.items()):
            return None
        text = listing_text(frames.escape(line) for line in self._lines())
        digest = frames.text_hash(text)
        before = self.seen.get(frames.LISTING_PATH)
        if digest == (before.digest if before else frames.text_hash("")):
            return None
        known = None if before is None else replace(before, text=self.text(frames.LISTING_PATH))
        return overlay.write(self._tokenizer, seq, frames.LISTING_PATH, text, digest, before=known)

    def _listing_concerns(self, path: str, now: Now) -> bool:
        tier = self.snapshot.tiers.get(path)
        if tier is not None:
            return True
        return path not in self._parts and not now.digest

    def _lines(self) -> list[str]:
        """The lines of the listing now, under the tiers of the snapshot."""
        folders = {
            found["folder"]: 0
            for line in self.snapshot.lines
            if line not in self.snapshot.tiers and (found := _FOLDER_LINE.match(line))
        }
        lines: list[str] = []
        for path in self._catalogue.entries:
            tier = self.snapshot.tiers.get(path)
            if tier == "path" or (tier is None and self._only_named(path)):
                lines.append(path)
            elif tier == "folder":
                folder = _above(path, folders)
                if folder is not None:
                    folders[folder] += 1
        return sorted([*lines, *(f"{folder}/ ({count} files)" for folder, count in folders.items())])

    def _only_named(self, path: str) -> bool:
        seen = self.seen.get(path)
        if seen is not None and seen.digest:
            return False
        known = self._catalogue.remembered(path)
        return known is not None and bool(known.skip) and not known.digest


def _above(path: str, folders: Mapping[str, int]) -> str | None:
    folder = path
    while "/" in folder:
        folder = folder.rpartition("/")[0]
        if folder in folders:
            return folder
    return "." if "." in folders else None
