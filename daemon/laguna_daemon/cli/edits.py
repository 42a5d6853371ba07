"""``undo`` and ``edits list|show``: the history of what was written, and the way back. Needs no daemon."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import typer

from laguna_context.git import find_root
from laguna_daemon import edits
from laguna_daemon.cli.output import remark
from laguna_daemon.edits.patch import to_patch
from laguna_daemon.edits.safety import printable
from laguna_daemon.errors import RepositoryError
from laguna_daemon.paths import journal_dir

app = typer.Typer(help="The edits that were written to a repository.", no_args_is_help=True, rich_markup_mode=None)

_REPO = typer.Option(None, "--repo", help="The repository (default: the one around this folder).")
_JSON = typer.Option(False, "--json", help="Print one JSON object.")


def undo(
    edit_id: str | None = typer.Argument(None, metavar="[ID]", help="An edit (default: the latest)."),
    repo: Path | None = _REPO,
    as_json: bool = _JSON,
) -> None:
    """Take an edit back: every file as it was before. Refused where a file has changed since."""
    root, journal = _root(repo), journal_dir()
    _recover(journal)
    record = edits.find(root, journal, edit_id)
    undoing = edits.undo(root, journal, record.id)
    files = [touched.path for touched in record.touched]
    if as_json:
        _print_json({"undone": record.id, "id": undoing, "files": files})
        return
    print(f"Undone: {record.id} ({_files(len(files))}). To have it back: laguna-daemon undo {undoing}")


@app.command("list")
def list_edits(repo: Path | None = _REPO, as_json: bool = _JSON) -> None:
    """List the edits of a repository, newest first."""
    root, journal = _root(repo), journal_dir()
    _recover(journal)
    records = edits.history(root, journal)
    gone = edits.undone(records)
    if as_json:
        _print_json({"root": str(root), "edits": [_described(record, gone) for record in records]})
        return
    if not records:
        remark(f"No edits have been written to {root}.")
    for record in records:
        when = datetime.fromtimestamp(record.time).strftime("%Y-%m-%d %H:%M:%S")
        what = f"undoes {record.undoes}" if record.undoes else "undone" if record.id in gone else ""
        print(f"{record.id}  {when}  {_files(len(record.touched))}  {what}".rstrip())


@app.command("show")
def show(
    edit_id: str | None = typer.Argument(None, metavar="[ID]", help="An edit (default: the latest not undone)."),
    repo: Path | None = _REPO,
    patch: bool = typer.Option(False, "--patch", help="Print a patch that git apply takes."),
    as_json: bool = _JSON,
) -> None:
    """Show what an edit changed."""
    root, journal = _root(repo), journal_dir()
    record = edits.find(root, journal, edit_id)
    changes = edits.as_changes(record)
    if patch:
        sys.stdout.buffer.write(to_patch(changes, object_format=edits.object_format(root)))
        return
    if as_json:
        described = _described(record, edits.undone(edits.history(root, journal)))
        _print_json(described | {"diff": edits.render(changes), "summary": edits.summary(changes)})
        return
    colour = sys.stdout.isatty()
    print(edits.render(changes, colour=colour), end="")
    print(edits.summary(changes))


def _root(repo: Path | None) -> Path:
    """The repository, or a folder outside git that was named."""
    where = (repo or Path.cwd()).resolve()
    found = find_root(where) if where.exists() else None
    if found is None and (repo is None or not where.is_dir()):
        raise RepositoryError(f"There is no repository at {where}.", "Name one with --repo.")
    return found or where


def _recover(journal: Path) -> None:
    for one in edits.recover(journal):
        outcome = "finished" if one.outcome == "new" else "taken back"
        remark(f"An interrupted edit of {one.root} ({one.id}) was {outcome}.")
        if one.left:
            remark(f"Left alone, changed meanwhile: {', '.join(map(printable, one.left))}")


def _described(record: edits.Record, gone: frozenset[str]) -> dict[str, Any]:
    renamed = {new: old for old, new in record.renames}
    files = [
        {"path": touched.path, "kind": kind, "renamed_from": renamed.get(touched.path)}
        for touched in record.touched
        if (kind := _kind(touched.path, touched.before is None, touched.after is None, renamed))
    ]
    return {
        "id": record.id,
        "time": record.time,
        "files": files,
        "undoes": record.undoes,
        "undone": record.id in gone,
    }


def _kind(path: str, was_absent: bool, is_absent: bool, renamed: dict[str, str]) -> str | None:
    if path in renamed:
        return "renamed"
    if is_absent:
        return None if path in renamed.values() else "deleted"
    return "created" if was_absent else "changed"


def _files(number: int) -> str:
    return "1 file" if number == 1 else f"{number} files"


def _print_json(value: dict[str, Any]) -> None:
    sys.stdout.buffer.write(orjson.dumps(value, default=str) + b"\n")
