"""Pieces of other files for a completion: those left lately, and declarations of what the file imports."""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from laguna_context.secrets import redact
from laguna_daemon.completion.declarations import Declarations, is_listed
from laguna_daemon.completion.imports import importing
from laguna_daemon.completion.ring import Ring
from laguna_daemon.lsp.text.documents import Document, Documents
from laguna_daemon.schemas import Snippet

_log = logging.getLogger(__name__)
PATIENCE = 0.25
"""Seconds that this may take; a slow disk must not hold back a suggestion."""
FRESH = 1.0
"""Seconds for which nothing is looked at again while one types."""
USABLE = 30.0
"""Seconds for which what was found is used while it is looked at again."""


@dataclass(frozen=True, slots=True)
class _Sought:
    """All that decides which pieces belong to a document, but for what is in the files."""

    root: Path
    path: str
    language: str
    importing: tuple[str, ...]
    left: list[Snippet]


@dataclass(frozen=True, slots=True)
class _Found:
    sought: _Sought
    snippets: list[Snippet]
    at: float  # monotonic


_Looking = asyncio.Future[list[Snippet]]


class Related:
    """One client's files beside the one that is being completed. Nothing goes from one root to another."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._rings: dict[Path, Ring] = {}
        self._listed: dict[tuple[Path, str], bool] = {}
        self._declarations = Declarations()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="declarations")
        self._found: dict[str, _Found] = {}
        self._looking: dict[str, tuple[_Sought, _Looking]] = {}
        self._current: tuple[str, Path, str, int] | None = None  # URI, root, path, line

    def at(self, uri: str, root: Path, path: str, line: int) -> None:
        """The user is here now; what stood around the place in the file that was left is kept."""
        before, self._current = self._current, (uri, root, path, line)
        if before is not None and before[0] != uri:
            left = self._documents.get(before[0])
            if left is not None:
                ring = self._rings.setdefault(before[1], Ring())
                ring.put(before[0], before[2], left.lines, min(before[3], len(left.lines) - 1))

    def closed(self, uri: str) -> None:
        """A file that is no longer open is no longer of interest."""
        self._found.pop(uri, None)
        self._looking.pop(uri, None)
        for ring in self._rings.values():
            ring.drop(uri)
        if self._current is not None and self._current[0] == uri:
            self._current = None

    async def snippets(self, document: Document, root: Path, path: str) -> list[Snippet]:
        """The most stable first; none if it takes too long. What was found a moment ago is not looked for again."""
        left = self._rings[root].snippets(document.uri) if root in self._rings else []
        sought = _Sought(root, path, document.language, importing(document.lines), left)
        if not sought.importing and not left:
            return []
        known = self._found.get(document.uri)
        age = time.monotonic() - known.at if known is not None and known.sought == sought else USABLE
        if known is not None and age < FRESH:
            return known.snippets
        begun = self._looking.get(document.uri)
        looking = begun[1] if begun is not None and begun[0] == sought else self._look(document.uri, sought)
        return known.snippets if known is not None and age < USABLE else await _awaited(looking)

    def _look(self, uri: str, sought: _Sought) -> _Looking:
        looking = asyncio.get_running_loop().run_in_executor(self._pool, self._pieces, sought)
        self._looking[uri] = (sought, looking)
        looking.add_done_callback(lambda done: self._looked(uri, sought, done))
        return looking

    def _looked(self, uri: str, sought: _Sought, looking: _Looking) -> None:
        if self._looking.get(uri) != (sought, looking):
            return  # closed, or something else is looked for by now
        del self._looking[uri]
        if not looking.cancelled() and looking.exception() is None:
            self._found[uri] = _Found(sought, looking.result(), time.monotonic())

    def _pieces(self, sought: _Sought) -> list[Snippet]:
        declared = self._declarations.of(sought.importing, sought.path, sought.root, sought.language)
        return [*self._shown(sought.root, sought.left), *declared]

    def close(self) -> None:
        """Let go of the thread."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _shown(self, root: Path, left: list[Snippet]) -> list[Snippet]:
        """Those of files that a model may see: an editor also opens ignored files, and secret ones."""
        found = []
        for each in left:
            key = (root, each.path)
            if key not in self._listed:
                self._listed[key] = is_listed(root, each.path)
            if self._listed[key]:
                found.append(Snippet(path=each.path, text=redact(each.text, each.path).text))
        return found


async def _awaited(looking: _Looking) -> list[Snippet]:
    try:
        async with asyncio.timeout(PATIENCE):
            return await asyncio.shield(looking)
    except TimeoutError:
        _log.debug("nothing related in time")
    except Exception as error:  # whatever a file holds, the suggestion comes
        _log.debug("nothing related: %s", type(error).__name__)
    return []
