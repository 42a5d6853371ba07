"""Open files whose text in an editor is not the one on the disk: they may be read, not overwritten."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from laguna_daemon.edits.files import NotText, load_text
from laguna_daemon.edits.tree import Tree


def unsaved(root: Path, buffers: Mapping[str, str]) -> dict[str, str]:
    """Those of the ``buffers`` (path -> text) that differ from their files; blocks on reading."""
    found = {}
    with Tree(root) as tree:
        for path, text in buffers.items():
            if _on_disk(tree, path) != text:
                found[path] = text
    return found


def version(text: str) -> str:
    """The sha256 (hex) by which the edit engine knows an unsaved text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _on_disk(tree: Tree, path: str) -> str | None:
    try:
        state = tree.read(path)
        return None if state is None else "".join(load_text(state.data).lines)
    except (OSError, NotText):
        return None
