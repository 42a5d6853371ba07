"""Document synchronisation: the client's text into our store, and from there to every question asked."""

import logging
import os
from pathlib import Path

from lsprotocol import types

from laguna_daemon.lsp.ports import BuffersPort
from laguna_daemon.lsp.text.documents import Change, Document, Documents, Place
from laguna_daemon.lsp.text.uris import to_path

_log = logging.getLogger(__name__)


class Sync:
    """One client's open documents, and their text in the buffers that the whole product sees."""

    def __init__(self, owner: str, documents: Documents, buffers: BuffersPort) -> None:
        self._owner = owner
        self._documents = documents
        self._buffers = buffers
        self._paths: dict[str, Path] = {}

    def path_of(self, uri: str) -> Path | None:
        """The real path of a document's file; None if it has none on this machine."""
        if uri in self._paths:
            return self._paths[uri]
        path = to_path(uri)
        return None if path is None else Path(os.path.realpath(path))

    def did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        """Take over a document's text."""
        item = params.text_document
        document = self._documents.open(item.uri, str(item.language_id), item.version, item.text)
        path = self.path_of(item.uri)
        if path is not None:
            self._paths[item.uri] = path
        self._publish(document)

    def did_change(self, params: types.DidChangeTextDocumentParams) -> Document | None:
        """Apply one notification's changes in order; returns the document, None if it is not open."""
        document = self._documents.get(params.text_document.uri)
        if document is None:
            _log.warning("a change to a document that is not open was ignored")
            return None
        document.apply(map(_change, params.content_changes), params.text_document.version)
        self._publish(document)
        return document

    def did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        """Forget a document: the disk's text counts again."""
        uri = params.text_document.uri
        self._documents.close(uri)
        path = self._paths.pop(uri, None)
        if path is not None and path not in self._paths.values():
            self._buffers.close(self._owner, path)

    def _publish(self, document: Document) -> None:
        path = self._paths.get(document.uri)
        if path is not None:
            self._buffers.set(self._owner, path, document.text, document.version)


def _change(event: types.TextDocumentContentChangeEvent) -> Change:
    if isinstance(event, types.TextDocumentContentChangePartial):
        start, end = event.range.start, event.range.end
        return Change(event.text, Place(start.line, start.character), Place(end.line, end.character))
    return Change(event.text)
