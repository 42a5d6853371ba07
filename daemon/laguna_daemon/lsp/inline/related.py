"""Pieces of other files for a completion: those left lately, and declarations of what the file imports."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from laguna_context.secrets import redact
from laguna_daemon.completion.declarations import Declarations, is_listed
from laguna_daemon.completion.ring import Ring
from laguna_daemon.lsp.text.documents import Document, Documents
from laguna_daemon.schemas import Snippet

_log = logging.getLogger(__name__)
PATIENCE = 0.25
"""Seconds that this may take; a slow disk must not hold back a suggestion."""


class Related:
    """One client's files beside the one that is being completed. Nothing goes from one root to another."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._rings: dict[Path, Ring] = {}
        self._listed: dict[tuple[Path, str], bool] = {}
        self._declarations = Declarations()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="declarations")
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
        for ring in self._rings.values():
            ring.drop(uri)
        if self._current is not None and self._current[0] == uri:
            self._current = None

    async def snippets(self, document: Document, root: Path, path: str) -> list[Snippet]:
        """The most stable first; none if it takes too long."""
        left = self._rings[root].snippets(document.uri) if root in self._rings else []
        lines, language = document.lines[:200], document.language
        work = asyncio.get_running_loop().run_in_executor(
            self._pool, lambda: [*self._shown(root, left), *self._declarations.of(lines, path, root, language)]
        )
        try:
            async with asyncio.timeout(PATIENCE):
                return await asyncio.shield(work)
        except TimeoutError:
            work.add_done_callback(lambda done: done.cancelled() or done.exception())
        except Exception as error:  # whatever a file holds, the suggestion comes
            _log.debug("nothing related: %s", type(error).__name__)
        return []

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
