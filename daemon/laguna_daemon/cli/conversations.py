"""``laguna-daemon conversations list|show|delete``: what was asked and answered, in every editor and shell."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import orjson
import typer

from laguna_daemon.cli.output import remark
from laguna_daemon.errors import UsageError

T = TypeVar("T")
app = typer.Typer(help="The conversations kept on this machine.", no_args_is_help=True, rich_markup_mode=None)
_JSON = typer.Option(False, "--json", help="Print one JSON object.")
_REPO = typer.Option(None, "--repo", help="Only those about this repository.")
_IDS = typer.Argument(metavar="ID...", help="As listed.")
_ID = typer.Argument(metavar="ID", help="As listed.")


@app.command("list")
def list_conversations(repo: Path | None = _REPO, as_json: bool = _JSON) -> None:
    """List the conversations, latest used first."""
    found = _with_store(lambda store: store.listed(None if repo is None else repo.resolve()))
    if as_json:
        _print_json({"conversations": [summary.model_dump() for summary in found]})
        return
    if not found:
        remark("There are no conversations.")
    for summary in found:
        when = datetime.fromtimestamp(summary.used).strftime("%Y-%m-%d %H:%M")
        turns = "1 turn " if summary.turns == 1 else f"{summary.turns} turns"
        print(f"{summary.id}  {when}  {turns}  {summary.root or '(no repository)'}: {_one_line(summary.title)}")


@app.command("show")
def show(
    id: str = _ID,
    thinking: bool = typer.Option(False, "--thinking", help="Show the model's reasoning too."),
    as_json: bool = _JSON,
) -> None:
    """Print a conversation whole."""
    found = _with_store(lambda store: store.read(id))
    if found is None:
        raise _unknown(id)
    if as_json:
        turns = [turn.model_dump() for turn in found.turns]
        _print_json({**found.summary.model_dump(), "turns": turns})
        return
    for number, turn in enumerate(found.turns):
        question = turn.question.strip() or f"({turn.task})"
        print(("\n" if number else "") + "\n".join(f"> {line}" for line in question.splitlines()) + "\n")
        if thinking and turn.thinking:
            print(f"{turn.thinking.strip()}\n")
        print(turn.answer.rstrip())


@app.command("delete")
def delete(ids: list[str] = _IDS) -> None:
    """Forget conversations. There is no way back."""
    for id in ids:
        if not _with_store(lambda store: store.delete(id)):  # noqa: B023 - called at once
            raise _unknown(id)


def _with_store(work: Callable[[Any], T]) -> T:
    from laguna_daemon.service.talkstore import TalkStore

    with closing(TalkStore.standard()) as store:
        return work(store)


def _unknown(id: str) -> UsageError:
    return UsageError(f"There is no conversation {id}.", "laguna-daemon conversations list shows those there are.")


def _one_line(text: str) -> str:
    """Without control characters: a title is the user's text, but a terminal obeys escapes."""
    return "".join(c if c.isprintable() else " " for c in text)


def _print_json(value: dict[str, Any]) -> None:
    sys.stdout.buffer.write(orjson.dumps(value) + b"\n")
    sys.stdout.flush()
