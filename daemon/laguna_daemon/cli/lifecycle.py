"""``laguna-daemon start | stop | status | logs``."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from typing import Annotated

import typer

from laguna_daemon.cli.output import Progress, remark, short
from laguna_daemon.errors import EngineUnavailable, UsageError
from laguna_daemon.lifecycle import ensure_running
from laguna_daemon.lifecycle import status as daemon_status
from laguna_daemon.lifecycle import stop as stop_daemon
from laguna_daemon.paths import log_dir
from laguna_daemon.schemas import Status, WorkspaceStatus

_LOGS = {"daemon": "daemon.log", "engine": "engine.log"}


def start(
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the engine is ready.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print the status as JSON.")] = False,
) -> None:
    """Start the daemon; does nothing if it is running."""
    found = ensure_running()
    if wait:
        found = _await_engine()
    if json_:
        print(found.model_dump_json(indent=2))
    else:
        remark(f"The daemon is running (pid {found.pid}); engine: {found.engine.phase}.")


def stop(
    json_: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """End the daemon and its engine."""
    stopped = stop_daemon()
    if json_:
        print('{"stopped": true}' if stopped else '{"stopped": false}')
    else:
        remark("The daemon has ended." if stopped else "No daemon is running.")


def status(
    json_: Annotated[bool, typer.Option("--json", help="Print the status as JSON.")] = False,
) -> None:
    """Say what the daemon, its engine and its repositories are doing."""
    found = daemon_status()
    if json_:
        print(found.model_dump_json(indent=2) if found else '{"running": false}')
    elif found is None:
        print("No daemon is running.")
    else:
        print("\n".join(_lines(found)))


def logs(
    which: Annotated[str, typer.Argument(help="daemon or engine")] = "daemon",
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="How many lines from the end.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as it grows.")] = False,
) -> None:
    """Print the log of the daemon or of the engine."""
    if which not in _LOGS:
        raise UsageError(f"There is no log called {which}.", "There are two: daemon and engine.")
    path = log_dir() / _LOGS[which]
    if not path.exists():
        remark(f"No log yet: {path}")
        return
    with path.open(errors="replace") as file:
        for line in file.readlines()[-lines:] if lines else []:
            sys.stdout.write(line)
        sys.stdout.flush()
        while follow:
            more = file.read()
            sys.stdout.write(more)
            sys.stdout.flush()
            time.sleep(0.3)


def _await_engine() -> Status:
    from laguna_daemon.api import client

    progress = Progress()
    try:
        with closing(client.watch_status()) as statuses:
            for found in statuses:
                engine = found.engine
                if engine.phase == "ready":
                    return found
                if engine.phase == "failed":
                    raise EngineUnavailable(engine.error or "The engine failed.", engine.advice or "")
                progress.say(f"Engine: {engine.detail or engine.phase}", stage=engine.detail)
    finally:
        progress.clear()
    raise EngineUnavailable("The daemon ended while its engine was starting.", "laguna-daemon logs")


def _lines(found: Status) -> list[str]:
    engine = found.engine
    lines = [
        f"Daemon   {found.version}, pid {found.pid}, up {found.uptime_s:,.0f} s, "
        f"{found.sessions} editor sessions, {found.busy} requests running",
        f"Engine   {engine.phase}{': ' + engine.detail if engine.detail else ''}"
        f" (profile {engine.profile}, model {engine.model or 'unknown'}, context {short(engine.context)})",
    ]
    if engine.reason:
        lines.append(f"         profile: {engine.reason}")
    lines += [f"         warning: {warning}" for warning in engine.warnings]
    if engine.error:
        lines.append(f"         {engine.error}")
    if engine.advice:
        lines.append(f"         {engine.advice}")
    lines += [
        f"Root     {root.root}: {root.state}, {root.files:,} files, {root.snapshot_tokens:,} tokens"
        f" + {root.overlay_tokens:,} of changes; {_residency(root)}"
        for root in found.workspaces
    ]
    return lines


def _residency(root: WorkspaceStatus) -> str:
    parts = [root.residency]
    if root.residency in ("warming", "cold") and root.prefix_tokens:
        parts = [f"{root.residency}, {short(root.warm_tokens)} of {short(root.prefix_tokens)} tokens warm"]
    if root.pinned:
        parts.append("pinned")
    if root.evictions:
        parts.append(f"lost {root.evictions} times")
    if root.waits_for:
        parts.append(f"not warmed up: {root.waits_for}")
    return ", ".join(parts)
