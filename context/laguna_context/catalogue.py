"""The tree as it is now: listed files, what each reads as, and the ids of its frame. Opens a file only if nothing
is known for its stat data."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from laguna_context import frames
from laguna_context.idcache import FileInfo, Stat, Store, frame_key
from laguna_context.listing import Entry, Selection, list_files, refresh
from laguna_context.reading import Document, Limits, Skip, probe, read_file
from laguna_context.secrets import Finding, forbidden, redact
from laguna_context.tokens import Ids, Tokenizer

Progress = Callable[[str, int, int], None]
"""Told while a snapshot is made: what is done, tokens so far, tokens in all."""

_BATCH = 64
_TEXTS = 256

# A file read within 100 ms of being written may be written again within one tick of the file system's clock and keep
# its stat data: what was read is not remembered.
SETTLE_NS = 100_000_000


@dataclass(frozen=True, slots=True)
class Text:
    """A text as the model may see it. `digest` is its sha256; `findings` are the secrets taken out."""

    text: str
    digest: str
    findings: tuple[Finding, ...]


@cache
def _reading_rules() -> str:
    """A hash of the code that decides what a file reads as: what was read under other rules is not trusted."""
    digest = hashlib.sha256()
    for name in ("encodings", "notebooks", "reading", "secret_files", "secret_rules", "secrets"):
        digest.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    return digest.hexdigest()


class Catalogue:
    """Not locked: the workspace calls it from one thread at a time."""

    def __init__(
        self,
        root: Path,
        tokenizer: Tokenizer,
        store: Store,
        selection: Selection,
        *,
        secrets: bool = True,
        limits: Limits | None = None,
    ) -> None:
        self.root = root
        self.entries: dict[str, Entry] = {}
        self.left_out: Mapping[str, int] = {}
        self.in_git = False
        self.opened = 0
        self._tokenizer = tokenizer
        self._store = store
        self._selection = selection
        self._secrets = secrets
        self._limits = limits or Limits()
        policy = f"{tokenizer.fingerprint} {frames.FRAME_VERSION} {_reading_rules()} {secrets} {self._limits}"
        self.scope = hashlib.sha256(f"{root}\0{policy}".encode("utf-8", "surrogateescape")).hexdigest()
        kept = store.get_files(self.scope)
        self._known = {path: info for path, info in kept.items() if info.key or info.skip}
        self._probed = {path: info.stat for path, info in kept.items() if not (info.key or info.skip)}
        self._new: dict[str, FileInfo] = {}
        self._texts: dict[str, tuple[FileInfo, str]] = {}
        self._unsettled: set[str] = set()

    # the listing -----------------------------------------------------------------------------------------------

    def rescan(self) -> set[str]:
        """List the tree again. Returns the paths that came, went, or may have changed."""
        listing = list_files(self.root, self._selection)
        before = self.entries
        self.entries = {entry.path: entry for entry in listing.entries}
        self.left_out, self.in_git = listing.left_out, listing.in_git
        gone = before.keys() - self.entries.keys()
        self._store.forget_files(self.scope, (self._known.keys() | self._probed.keys()) - self.entries.keys())
        changed = {
            path
            for path, entry in self.entries.items()
            if (old := before.get(path)) is None or _stat(old) != _stat(entry) or old.kind != entry.kind
        }
        changed |= self._unsettled
        self._forget(changed)
        return changed | gone

    def refresh(self, paths: Iterable[str]) -> set[str]:
        """Look at these paths again. Returns those whose entry came, went or may have changed."""
        changed = set()
        for path, entry in refresh(self.root, paths, self.entries, self._selection).items():
            old = self.entries.get(path)
            if entry is None:
                if old is not None:
                    del self.entries[path]
                    changed.add(path)
            else:
                self.entries[path] = entry
                changed.add(path)
        self._forget(changed)
        return changed

    def _forget(self, paths: Iterable[str]) -> None:
        """Do not trust what was read so soon after it was written that a later write left the same stat data."""
        for path in self._unsettled.intersection(paths):
            self._known.pop(path, None)
            self._unsettled.discard(path)
        for path in paths:
            self._texts.pop(path, None)

    # reading ---------------------------------------------------------------------------------------------------

    def clean(self, path: str, text: str) -> Text:
        """A text from any source (file, buffer) as the model may see it."""
        findings: tuple[Finding, ...] = ()
        if self._secrets:
            redacted = redact(text, path)
            text, findings = redacted.text, redacted.findings
        return Text(text, frames.text_hash(text), findings)

    def hidden(self, path: str) -> str | None:
        """Why this path must never be shown, or None."""
        return forbidden(path) if self._secrets else None

    def info(self, path: str) -> FileInfo:
        """What a listed file reads as; reads it only if nothing is known. KeyError if it is not listed."""
        entry = self.entries[path]
        known = self._known.get(path)
        if known is not None and known.stat == _stat(entry):
            return known
        info, text = self.read(path)
        if len(self._texts) < _TEXTS:
            self._texts[path] = (info, text)
        return info

    def text(self, path: str) -> tuple[FileInfo, str]:
        """A listed file with its text, as it was read since it last changed or is read now."""
        kept = self._texts.get(path)
        return kept if kept is not None and kept[0].stat == _stat(self.entries[path]) else self.read(path)

    def remembered(self, path: str) -> FileInfo | None:
        """What is known of a file without opening it."""
        entry, known = self.entries.get(path), self._known.get(path)
        return known if entry is not None and known is not None and known.stat == _stat(entry) else None

    def read(self, path: str) -> tuple[FileInfo, str]:
        """Read a listed file now: what it reads as, and its text (empty if it has none)."""
        entry = self.entries[path]
        reason = self.hidden(path)
        if reason is not None:
            info = FileInfo(_stat(entry), b"", "", "", "", -1, "secret", reason, ())
            return self._remember(path, info, True), ""
        self.opened += 1
        found = read_file(self.root, entry, self._limits)
        if not isinstance(found, Document):
            return self._skip(path, found), ""
        text = self.clean(path, found.text)
        frame = frames.document(path, text.text, text.digest)
        key = frame_key(self._tokenizer.fingerprint, frame.text.encode("utf-8", "surrogatepass"))
        info = FileInfo(_stat(entry), key, frame.id, text.digest, found.sha256, -1, "", found.note, text.findings)
        old = self._known.get(path)
        if old is not None and old.key == key:
            info = replace(info, tokens=old.tokens)
        return self._remember(path, info, found.settled), text.text

    def _skip(self, path: str, found: Skip) -> FileInfo:
        empty = frames.text_hash("") if found.reason == "empty" else ""
        info = FileInfo(_stat(self.entries[path]), b"", "", empty, "", -1, found.reason, found.detail, ())
        return self._remember(path, info, found.reason not in ("missing", "unreadable"))

    def _remember(self, path: str, info: FileInfo, settled: bool) -> FileInfo:
        self._known[path] = info
        recent = max(info.stat.mtime, info.stat.ctime) > time.time_ns() - SETTLE_NS
        if settled and not recent:
            self._new[path] = info
        else:
            self._new.pop(path, None)
            self._unsettled.add(path)
        return info

    def classify(self) -> None:
        """Find out, as cheaply as can be, which of the files not read so far have no text, and why."""
        for path, entry in self.entries.items():
            at = _stat(entry)
            if self.remembered(path) is not None or self._probed.get(path) == at or self.hidden(path) is not None:
                continue
            found = probe(self.root, entry, self._limits)
            if found is None:
                self._probed[path] = at
                if max(at.mtime, at.ctime) <= time.time_ns() - SETTLE_NS:
                    self._new[path] = FileInfo(at, b"", "", "", "", -1, "", "", ())
            else:
                self._skip(path, found)

    def ids(self, paths: Sequence[str]) -> dict[str, Ids]:
        """Ids of the document frames of these files, from the cache where it has them. Files that turn out to have no
        text are left out of the answer."""
        out: dict[str, Ids] = {}
        for start in range(0, len(paths), _BATCH):
            out |= self._some_ids(paths[start : start + _BATCH])
        return out

    def _some_ids(self, paths: Sequence[str]) -> dict[str, Ids]:
        known = {path: info for path in paths if (info := self.remembered(path)) is not None}
        cached = self._store.get_ids([info.key for info in known.values() if not info.skip])
        infos: dict[str, FileInfo] = {}
        rendered: dict[str, str] = {}
        for path in paths:
            info = known.get(path)
            if info is None or (not info.skip and info.key not in cached):
                info, text = self.read(path)
                if not info.skip:
                    rendered[path] = frames.document(path, text, info.digest).text
            if not info.skip:
                infos[path] = info
        fresh = self._encode({infos[path].key: text for path, text in rendered.items()})
        cached |= fresh
        found = {path: cached[info.key] for path, info in infos.items()}
        for path, ids in found.items():
            if infos[path].tokens != ids.size:
                self._count(path, ids.size)
        return found

    def _encode(self, rendered: Mapping[bytes, str]) -> dict[bytes, Ids]:
        fresh = dict(zip(rendered, self._tokenizer.encode_many(list(rendered.values())), strict=True))
        self._store.put_ids(fresh)
        return fresh

    def _count(self, path: str, tokens: int) -> None:
        info = replace(self._known[path], tokens=tokens)
        self._known[path] = info
        if path in self._new:
            self._new[path] = info

    def save(self) -> None:
        """Write what was learned to the store."""
        self._store.put_files(self.scope, self._new)
        self._new = {}
        self._texts = {}


def _stat(entry: Entry) -> Stat:
    return Stat(entry.size, entry.mtime_ns, entry.ctime_ns, entry.inode, entry.mode)
