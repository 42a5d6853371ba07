"""``laguna-daemon warm``: read a repository into the engine ahead of its questions."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated, Literal

import typer

from laguna_daemon.cli.output import Progress, remark
from laguna_daemon.errors import UsageError
from laguna_daemon.lifecycle import ensure_running
from laguna_daemon.schemas import NoticeEvent, ProgressEvent, UsageEvent, WarmRequest
from laguna_daemon.service import roots


def warm(
    repo: Annotated[Path | None, typer.Option(help="The repository; else the one around this folder.")] = None,
    pin: Annotated[bool, typer.Option("--pin", help="Keep it warm before any other.")] = False,
    unpin: Annotated[bool, typer.Option("--unpin", help="No longer.")] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop its warm-up until somebody asks about it.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Allow the home folder or / as root.")] = False,
) -> None:
    """Read a repository into the engine, so that its next question is answered at once."""
    root = roots.find(repo or roots.here(), repo is not None, force)
    request = WarmRequest(root=str(root), action=_action(pin, unpin, stop), force=force)
    from laguna_daemon.api import client

    ensure_running()
    progress = Progress()
    usage = None
    with closing(client.warm(request)) as events:
        for event in events:
            if isinstance(event, ProgressEvent):
                progress.show(event)
                continue
            progress.clear()
            if isinstance(event, NoticeEvent):
                remark(event.message)
            elif isinstance(event, UsageEvent):
                usage = event.usage
    progress.clear()
    if json_:
        print(usage.model_dump_json(indent=2) if usage else "{}")


def _action(pin: bool, unpin: bool, stop: bool) -> Literal["warm", "pin", "unpin", "stop"]:
    if pin + unpin + stop > 1:
        raise UsageError("--pin, --unpin and --stop exclude each other.")
    return "pin" if pin else "unpin" if unpin else "stop" if stop else "warm"
