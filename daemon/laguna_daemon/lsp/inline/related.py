"""Pieces of other files for a completion: those left lately, and declarations of what the file imports."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from laguna_context.secrets import forbidden, redact
from laguna_daemon.completion.declarations import Declarations
from laguna_daemon.completion.ring import Ring
from laguna_daemon.lsp.text.documents import Document, Documents
from laguna_daemon.schemas import Snippet

_log = logging.getLogger(__name__)
PATIENCE = 0.25
"""Seconds that declarations may take; a slow disk must not hold back a suggestion."""


class Related:
    """One client's files beside the one that is being completed."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._ring = Ring()
        self._declarations = Declarations()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="declarations")
        self._current: tuple[str, str, int] | None = None  # URI, path, line

    def at(self, uri: str, path: str, line: int) -> None:
        """The user is here now; what stood around the place in the file that was left is kept."""
        before, self._current = self._current, (uri, path, line)
        if before is not None and before[0] != uri:
            left = self._documents.get(before[0])
            if left is not None and forbidden(before[1]) is None:
                self._ring.put(before[0], before[1], left.lines, min(before[2], len(left.lines) - 1))

    def closed(self, uri: str) -> None:
        """A file that is no longer open is no longer of interest."""
        self._ring.drop(uri)
        if self._current is not None and self._current[0] == uri:
            self._current = None

    async def snippets(self, document: Document, path: str, root: Path | None) -> list[Snippet]:
        """The most stable first."""
        found = [
            Snippet(path=each.path, text=redact(each.text, each.path).text)
            for each in self._ring.snippets(document.uri)
        ]
        if root is None:
            return found
        lines, language = document.lines[:200], document.language
        work = asyncio.get_running_loop().run_in_executor(
            self._pool, lambda: self._declarations.of(lines, path, root, language)
        )
        try:
            async with asyncio.timeout(PATIENCE):
                return found + await asyncio.shield(work)
        except TimeoutError:
            work.add_done_callback(lambda done: done.cancelled() or done.exception())
        except Exception as error:  # whatever a file holds, the suggestion comes
            _log.debug("no declarations: %s", type(error).__name__)
        return found

    def close(self) -> None:
        """Let go of the thread."""
        self._pool.shutdown(wait=False, cancel_futures=True)
