"""An answer's edit blocks as a WorkspaceEdit, through the edit engine: all of them fit, or there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsprotocol import types

from laguna_daemon import edits
from laguna_daemon.lsp.text.uris import from_path
from laguna_daemon.schemas import EditRefusal

_LABELS = {"changed": "Edit", "created": "Create", "deleted": "Delete", "renamed": "Rename"}
_CONFIRMED = frozenset(["created", "deleted", "renamed"])


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a client can do with a WorkspaceEdit."""

    versions: bool = False
    operations: frozenset[str] = frozenset()
    annotations: bool = False

    @classmethod
    def of(cls, capabilities: types.ClientCapabilities) -> Abilities:
        """As the client says at its start."""
        found = capabilities.workspace.workspace_edit if capabilities.workspace is not None else None
        if found is None:
            return cls()
        operations = frozenset(str(getattr(kind, "value", kind)) for kind in found.resource_operations or [])
        # Neovim lists operations, which only document changes can carry, and no `documentChanges`.
        versions = bool(found.document_changes or operations)
        return cls(versions, operations, found.change_annotation_support is not None)


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A document of the client: the URI as the client spells it, its version and text."""

    uri: str
    version: int
    text: str


@dataclass(frozen=True, slots=True)
class Basis:
    """What an edit is for: a root, the client's open documents below it by relative path, what the model has seen.

    ``seen`` maps paths to the sha256 (hex) of the text that the model was shown.
    """

    root: Path
    documents: Mapping[str, OpenFile] = field(default_factory=dict)
    seen: Mapping[str, str] = field(default_factory=dict)


class CannotEdit(Exception):
    """There is no edit; ``refusals`` say why."""

    def __init__(self, refusals: list[EditRefusal]) -> None:
        super().__init__("\n".join(refusal.message for refusal in refusals))
        self.refusals = refusals


def propose(answer: str, basis: Basis, units: edits.Units, abilities: Abilities) -> dict[str, Any] | None:
    """The WorkspaceEdit that an answer asks for, as plain JSON; None if it holds no edit. Blocks on reading files.

    Raises CannotEdit if any block is not exactly right: nothing is guessed.
    """
    parsed = edits.parse(answer)
    if not parsed.blocks and not parsed.problems:
        return None
    buffers = {path: document.text for path, document in basis.documents.items()}
    found = edits.plan(basis.root, parsed.blocks, basis.seen, problems=parsed.problems, buffers=buffers)
    if isinstance(found, edits.Refusals):
        raise CannotEdit([_refusal(refusal) for refusal in found.refusals])
    files = edits.text_edits(found, units=units)
    needed = {_LABELS[each.kind].lower() for each in files} - {"edit"} - abilities.operations
    if needed:
        message = f"The answer wants to {', '.join(sorted(needed))} files, which this editor cannot do for a server."
        raise CannotEdit([EditRefusal(path=None, code="editor", message=message)])
    return _with_versions(files, basis, abilities) if abilities.versions else _plain(files, basis)


def _refusal(refusal: edits.Refusal) -> EditRefusal:
    return EditRefusal(path=refusal.path, code=refusal.code, message=refusal.message, places=list(refusal.places))


def _plain(files: tuple[edits.FileEdits, ...], basis: Basis) -> dict[str, Any]:
    return {"changes": {_uri(basis, each.path): [_text_edit(edit) for edit in each.edits] for each in files}}


def _with_versions(files: tuple[edits.FileEdits, ...], basis: Basis, abilities: Abilities) -> dict[str, Any]:
    changes: list[dict[str, Any]] = []
    notes: dict[str, dict[str, Any]] = {}
    for number, each in enumerate(files):
        mark: dict[str, Any] = {}
        if abilities.annotations:
            mark["annotationId"] = f"laguna-{number}"
            notes[f"laguna-{number}"] = {
                "label": f"{_LABELS[each.kind]} {each.path}",
                "description": f"was {each.source}" if each.source else "proposed by Laguna",
                "needsConfirmation": each.kind in _CONFIRMED or bool(edits.self_starting([each.path])),
            }
        changes += _operations(each, basis, mark)
    edit: dict[str, Any] = {"documentChanges": changes}
    if notes:
        edit["changeAnnotations"] = notes
    return edit


def _operations(each: edits.FileEdits, basis: Basis, mark: Mapping[str, Any]) -> list[dict[str, Any]]:
    uri = _uri(basis, each.path)
    found: list[dict[str, Any]] = []
    if each.kind == "created":
        found.append({"kind": "create", "uri": uri, "options": {"overwrite": False}, **mark})
    elif each.kind == "renamed":
        assert each.source is not None
        options = {"overwrite": False}
        found.append({"kind": "rename", "oldUri": _uri(basis, each.source), "newUri": uri, "options": options, **mark})
    elif each.kind == "deleted":
        return [{"kind": "delete", "uri": uri, **mark}]
    if each.edits:
        document = basis.documents.get(each.path)
        version = document.version if document is not None and each.kind == "changed" else None
        text_edits = [{**_text_edit(edit), **mark} for edit in each.edits]
        found.append({"textDocument": {"uri": uri, "version": version}, "edits": text_edits})
    return found


def _text_edit(edit: edits.TextEdit) -> dict[str, Any]:
    return {"range": {"start": _position(edit.start), "end": _position(edit.end)}, "newText": edit.new_text}


def _position(place: edits.Position) -> dict[str, int]:
    return {"line": place.line, "character": place.character}


def _uri(basis: Basis, path: str) -> str:
    document = basis.documents.get(path)
    return document.uri if document is not None else from_path(basis.root / path)
