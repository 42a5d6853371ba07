"""Jupyter notebooks without what running them left behind."""

from __future__ import annotations

import json


def without_outputs(text: str) -> tuple[str, str]:
    """The notebook's JSON with outputs, execution counts and attachments taken away, and a note on it.

    It is written the way Jupyter writes it, so that the lines of a cell's source are those of the file.
    Text that is no notebook comes back as it is, with an empty note.
    """
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError):
        return text, ""
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        return text, ""
    removed = 0
    for cell in cells:
        removed += bool(cell.get("outputs")) + bool(cell.get("attachments"))
        if "outputs" in cell:
            cell["outputs"] = []
        if "execution_count" in cell:
            cell["execution_count"] = None
        cell.pop("attachments", None)
    stripped = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    return stripped, f"outputs and attachments of {removed} cells left out" if removed else ""
