"""The façade: open a repository, say what changed, get prompts."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from laguna_context import accounts, frames, overlay
from laguna_context.building import Builder
from laguna_context.catalogue import Catalogue, Progress
from laguna_context.compaction import Compaction, Wish, expelled
from laguna_context.conversation import Conversation
from laguna_context.errors import RootRefused
from laguna_context.idcache import Store
from laguna_context.journal import Journal
from laguna_context.listing import Selection
from laguna_context.manifest import Manifest, Why
from laguna_context.overlay import Change
from laguna_context.planning import COMFORT, price
from laguna_context.prompt import Budget, Prompt, PromptTooLarge, Span, spans
from laguna_context.snapshot import restore
from laguna_context.template import ChatTemplate
from laguna_context.tokens import Ids, Tokenizer

# Compacting by choice (idle) is worth a prefill only when this share of the overlay is used.
_WORTH_COMPACTING = 0.25
# From this share of the overlay's budget on a compaction that makes nobody wait is looked for, again after so much.
_EARLY = 0.75
_AGAIN = 0.1
# Files whose rules decide what is listed.
_RULE_FILES = (".gitignore", ".lagunaignore", ".gitmodules")


class Workspace:
    """One repository under one tokenizer, template and budget. Every method blocks and is safe from any thread."""

    def __init__(
        self,
        root: Path,
        tokenizer: Tokenizer,
        template: ChatTemplate,
        budget: Budget,
        store: Store,
        selection: Selection,
        *,
        secrets: bool,
        model: str,
    ) -> None:
        self.root = root
        self.budget = budget
        self.compactions = 0
        self.resumable: Sequence[int] | None = None
        """Places in a prompt's ids where the engine can take up its cache, None for anywhere: a compaction counts what
        it has to read from the last of them before its cut."""
        self._tokenizer = tokenizer
        self._template = template
        self._store = store
        self._model = model
        self._selection = selection
        self._lock = threading.RLock()
        self._pending: set[str] = set()
        self._catalogue = Catalogue(root, tokenizer, store, selection, secrets=secrets)
        around = max(template.open_first(t).size + template.tail(t).size for t in (False, True))
        self._builder = Builder(self._catalogue, tokenizer, store, budget.snapshot(around), selection.order)
        state = f"{self._catalogue.scope} {template.fingerprint} {asdict(budget)} {selection}"
        self._state = hashlib.sha256(state.encode("utf-8", "surrogateescape")).hexdigest()
        self._journal: Journal
        self._prefixes: dict[bool, Ids] = {}

    @classmethod
    def open(
        cls,
        root: Path,
        *,
        tokenizer: Tokenizer,
        template: ChatTemplate,
        budget: Budget,
        cache_dir: Path,
        selection: Selection = Selection(),  # noqa: B008 (frozen)
        secrets: bool = True,
        progress: Progress | None = None,
        model: str = "",
    ) -> Workspace:
        """List `root`, take up the snapshot kept from an earlier run or freeze a new one.

        `model` names the model revision and is part of the prefix's identity. `progress(what, done, total)` is called
        while files are read, in tokens. ContextError and its kinds if the folder cannot be a workspace.
        """
        if not root.is_dir():
            raise RootRefused(f"{root} is not a folder.", "Name an existing folder.")
        real, store = Path(os.path.realpath(root)), Store(cache_dir)
        space = cls(real, tokenizer, template, budget, store, selection, secrets=secrets, model=model)
        space._start(progress)
        return space

    def close(self) -> None:
        """Write what was learned to the cache folder."""
        with self._lock:
            self._catalogue.save()
            self._store.close()

    def _start(self, progress: Progress | None) -> None:
        with self._lock:
            self._catalogue.rescan()
            if not self._resume():
                self._adopt(Journal(self._catalogue, self._tokenizer, self._builder.fresh(progress)))
            self._catalogue.save()

    def _resume(self) -> bool:
        kept = self._store.get_snapshot(self._state)
        snapshot = restore(kept[0], kept[1]) if kept else None
        if kept is None or snapshot is None:
            return False
        journal = Journal(self._catalogue, self._tokenizer, snapshot, kept[0].get("lineage"), kept[0].get("carried", 0))
        try:
            for body, ids in kept[2]:
                journal.apply(overlay.restore(body, ids))
        except (KeyError, TypeError, ValueError):
            return False
        self._set(journal)
        named = self._catalogue.entries.keys() | journal.seen.keys() | snapshot.tiers.keys()
        self._pending = {path for path in named if self._differs(path)}
        return True

    def _differs(self, path: str) -> bool:
        """Whether the model may have to be told about `path`, judged without opening it."""
        seen = self._journal.seen.get(path)
        if path not in self._catalogue.entries:
            return path != frames.LISTING_PATH and (seen is None or bool(seen.digest))
        if seen is None:
            return path not in self._journal.snapshot.tiers
        known = self._catalogue.remembered(path)
        return known is None or known.digest != seen.digest

    def _adopt(self, journal: Journal) -> None:
        """Make this snapshot the one in use, and keep it."""
        self._set(journal)
        body = {**journal.snapshot.body(), "lineage": journal.lineage, "carried": journal.carried}
        self._store.put_snapshot(self._state, body, journal.snapshot.ids)
        self._keep(journal.overlay.changes)

    def _set(self, journal: Journal) -> None:
        self._journal = journal
        self._prefixes = {}
        self._pending = set()
        self._look_at = max(int(_EARLY * self.budget.overlay), journal.carried + int(_AGAIN * self.budget.overlay))

    def _keep(self, changes: Sequence[Change]) -> None:
        self._store.put_entries(self._state, [(c.seq, c.body(), c.ids) for c in changes])

    # what changed ------------------------------------------------------------------------------------------------

    def changed(self, paths: Iterable[str] | None) -> None:
        """Files may have changed: look at these relative paths again, or with None at everything."""
        with self._lock:
            names = None if paths is None else set(paths)
            if names is None or any(name.rpartition("/")[2] in _RULE_FILES for name in names):
                self._pending |= self._catalogue.rescan()
            else:
                self._pending |= self._catalogue.refresh(names)

    def _settle(self, buffers: Mapping[str, str]) -> list[str]:
        """Bring the overlay up to date, compacting if it would exceed its budget. Returns notes for the user."""
        notes: list[str] = []
        if expelled(self._catalogue, self._pending, self._journal.seen) and self._compact():
            notes.append("Files that rules now keep out were taken from the repository's prefix.")
        self._journal.name_only(path for path in self._pending if self._unknown(path) and self._builder.minor(path))
        changes = self._journal.differences(self._pending, buffers, self._room())
        if changes is not None and (wish := self._wish(changes)) and self._compact(wish):
            notes.append("The repository's prefix was compacted.")
            changes = self._journal.differences(self._pending, buffers, self._room())
        if changes is None:
            if self._compact():
                notes.append("The overlay was full: the repository's prefix was compacted.")
            changes = self._journal.differences(self._pending, buffers, self.budget.prompt)
        if changes is None:
            raise PromptTooLarge(self.budget.prompt + 1, self.budget.prompt, "set of changed files")
        for change in changes:
            self._journal.apply(change)
        self._pending = set()
        if changes:
            self._keep(changes)
            self._catalogue.save()
        return notes

    def _room(self) -> int:
        """Tokens that the overlay may still take: of its budget, and of what the snapshot leaves of its own."""
        overlay = self.budget.overlay
        unused = self._builder.budget - self._journal.snapshot.ids.size
        return overlay + min(max(0, unused), overlay) - self._journal.overlay.tokens

    def _wish(self, changes: Sequence[Change]) -> Wish | None:
        """Which compaction to look for though the overlay is not full: one that is better than appending these
        changes where they make somebody wait anyway, else one that nobody would notice."""
        fresh = sum(change.ids.size for change in changes)
        tokens = self._journal.overlay.tokens + fresh
        if fresh > COMFORT * self._builder.budget:
            return Wish(below=price(fresh, self._room() - fresh, True, self._builder.budget))
        if not changes or tokens < self._look_at:
            return None
        self._look_at = tokens + int(_AGAIN * self.budget.overlay)
        return Wish(gently=True)

    def _unknown(self, path: str) -> bool:
        """Whether the model has never heard of a path."""
        return path not in self._journal.seen and path not in self._journal.snapshot.tiers

    @property
    def files_opened(self) -> int:
        """How many content files were opened so far."""
        return self._catalogue.opened

    # prompts -----------------------------------------------------------------------------------------------------

    def prompt(
        self,
        question: str,
        *,
        buffers: Mapping[str, str] | None = None,
        extras: Sequence[tuple[str, str]] = (),
        conversation: Conversation | None = None,
        thinking: bool = False,
    ) -> Prompt:
        """The ids of one request: prefix, overlay, earlier turns, extras (name, text), the question.

        `buffers`: path -> text of files open in an editor; an unsaved one becomes an overlay entry. PromptTooLarge if
        no room is left for the answer.
        """
        with self._lock:
            usable, notes = accounts.usable_buffers(self._catalogue, self._selection, buffers or {})
            notes += self._settle(usable)
            tail = self._task(question, extras, thinking)
            overlay_ids = self._journal.overlay.ids()
            prefix = self._prefix(thinking)
            if conversation is None or not conversation.turns:
                return self._join(prefix, overlay_ids, [], tail, usable, notes, thinking)
            return self._follow(conversation, prefix, overlay_ids, tail, usable, notes, thinking)

    def _follow(
        self,
        conversation: Conversation,
        prefix: Ids,
        overlay_ids: Ids,
        tail: Ids,
        buffers: Mapping[str, str],
        notes: list[str],
        thinking: bool,
    ) -> Prompt:
        """A later turn: the very ids of the turns before it, unless the snapshot they stood on is gone."""
        again = self._template.open_next(thinking)
        if conversation.lineage == self._journal.lineage:
            fresh = self._journal.overlay.since(conversation.overlay_seq)
            parts = [conversation.ids, again, *(change.ids for change in fresh), tail]
            ids = np.concatenate(parts)
            start = conversation.ids.size + again.size
            places = (*conversation.documents, *spans([(c.path, c.ids.size) for c in fresh], start))
            head, behind = conversation.prefix_tokens, conversation.overlay_tokens
            return self._account(ids, head, behind, tail, places, buffers, notes, thinking)
        turns: list[Ids] = []
        for turn in conversation.turns:
            turns += [turn.task, turn.answer, again]
        notes.append("The repository's prefix was compacted: the conversation was moved onto the new one.")
        return self._join(prefix, overlay_ids, turns, tail, buffers, notes, thinking)

    def _join(
        self,
        prefix: Ids,
        overlay_ids: Ids,
        turns: Sequence[Ids],
        tail: Ids,
        buffers: Mapping[str, str],
        notes: list[str],
        thinking: bool,
    ) -> Prompt:
        ids = np.concatenate([prefix, overlay_ids, *turns, tail])
        head = self._template.open_first(thinking).size
        places = [(part.path, part.end - part.start) for part in self._journal.snapshot.parts]
        places += [(change.path, change.ids.size) for change in self._journal.overlay.changes]
        return self._account(ids, prefix.size, overlay_ids.size, tail, spans(places, head), buffers, notes, thinking)

    def _account(
        self,
        ids: Ids,
        prefix: int,
        behind: int,
        tail: Ids,
        places: tuple[Span, ...],
        buffers: Mapping[str, str],
        notes: list[str],
        thinking: bool,
    ) -> Prompt:
        earlier = ids.size - prefix - behind - tail.size
        if ids.size > self.budget.prompt:
            sizes = {"question": tail.size, "conversation": earlier, "set of changed files": behind}
            raise PromptTooLarge(ids.size, self.budget.prompt, max(sizes, key=lambda name: sizes[name]))
        return Prompt(
            ids=ids,
            prefix_tokens=prefix,
            overlay_tokens=behind,
            task_tokens=tail.size,
            snapshot=self._journal.snapshot.id,
            overlay_seq=self._journal.overlay.seq,
            identity=self._identity(thinking),
            buffers_used=tuple(sorted(p for p in buffers if (s := self._journal.seen.get(p)) and s.unsaved)),
            notes=tuple(notes),
            documents=places,
            thinking=thinking,
            conversation_tokens=earlier,
            lineage=self._journal.lineage,
        )

    def _task(self, question: str, extras: Sequence[tuple[str, str]], thinking: bool) -> Ids:
        shown = [frames.extra(name, self._catalogue.clean(name, text).text).text for name, text in extras]
        ids = self._tokenizer.encode("".join([*shown, frames.task(question)]))
        return np.concatenate([ids, self._template.tail(thinking)])

    def _prefix(self, thinking: bool) -> Ids:
        if thinking not in self._prefixes:
            head = self._template.open_first(thinking)
            self._prefixes[thinking] = np.concatenate([head, self._journal.snapshot.ids])
        return self._prefixes[thinking]

    @property
    def identity(self) -> str:
        """Names everything the prefix depends on; equal identities mean equal ids."""
        parts = [self._model, self._tokenizer.fingerprint, self._template.fingerprint, frames.FRAME_VERSION]
        text = json.dumps([*parts, os.fsencode(self.root).hex(), self._journal.snapshot.id])
        return hashlib.sha256(text.encode()).hexdigest()

    def _identity(self, thinking: bool) -> str:
        """The identity of the prefix that a prompt has: another one with thinking only if its head is another."""
        return f"{self.identity}+thinking" if thinking and self._template.thinking_differs else self.identity

    # compaction --------------------------------------------------------------------------------------------------

    def compact(self, *, force: bool = False) -> bool:
        """Freeze a new snapshot that keeps what costs least to keep; False if there was no need."""
        with self._lock:
            if not force and self._journal.fresh < _WORTH_COMPACTING * self.budget.overlay:
                return False
            return self._compact()

    def _compact(self, wish: Wish = Wish()) -> bool:  # noqa: B008 (frozen)
        """Replace snapshot and overlay by ones that say the same; False if that would change nothing."""
        journal = Compaction(
            self._journal, self._catalogue, self._tokenizer, self._builder, self._pending, self.budget.overlay
        ).run(replace(wish, resumable=self._resumable()))
        self._catalogue.save()
        if journal is None:
            return False
        self._adopt(journal)
        self.compactions += 1
        return True

    def _resumable(self) -> list[int] | None:
        """`resumable` counted from the first document."""
        if self.resumable is None:
            return None
        head = self._template.open_first(False).size
        return [place - head for place in self.resumable if place >= head]

    # accounts ----------------------------------------------------------------------------------------------------

    def manifest(self) -> Manifest:
        """What the model is shown, file by file. Settles pending changes of the disk first."""
        with self._lock:
            self._settle({})
            self._catalogue.classify()
            self._catalogue.save()
            head = self._template.open_first(False).size
            return accounts.manifest(self._journal, self._catalogue, self.identity, self.budget, head)

    def why(self, path: str) -> Why:
        """Why `path` is shown, named or left out."""
        with self._lock:
            return accounts.why(self._journal, self._catalogue, self._selection, path)

    def where_broke(self, cached_tokens: int, prompt: Prompt, *, block: int = 128) -> str | None:
        """The first document that the engine did not find in its cache, or None if it had the whole prefix.

        `cached_tokens`: as the engine reports; `block`: tokens of its cache blocks, of which the last may be cut.
        """
        return accounts.where_broke(cached_tokens, prompt, block)


__all__ = ["Budget", "Conversation", "Prompt", "PromptTooLarge", "Workspace"]
