"""``laguna-daemon gc | uninstall``: giving disk space back."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from laguna_daemon import lifecycle, systemd
from laguna_daemon.cli.output import remark
from laguna_daemon.engine import install as engines
from laguna_daemon.engine.setup.storage import gigabytes
from laguna_daemon.holdings import Holding, holdings, take_away

_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]


def gc(as_json: _Json = False) -> None:
    """Remove what no installation needs any more: cut-off and outdated engines, downloads. Says what it freed."""
    freed = engines.collect()
    held = holdings()
    if as_json:
        print(json.dumps({"freed_bytes": freed, "held": [_item(holding) for holding in held]}))
        return
    for holding in held:
        print(_line(holding))
    remark(f"{gigabytes(freed)} freed; {gigabytes(sum(holding.size for holding in held))} are in use.")


def uninstall(
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without, it is only said what would go.")] = False,
    settings: Annotated[bool, typer.Option("--settings", help="Your config.toml and profiles too.")] = False,
    as_json: _Json = False,
) -> None:
    """Remove everything the product put on this machine: engines, models, caches, logs, the undo journal, the unit.

    Lists it, and removes it only with --yes. The command itself goes with pip uninstall laguna-daemon.
    """
    if yes:
        lifecycle.stop()
        systemd.remove()
    found = holdings(settings=settings)
    going = sum(holding.size for holding in found if not holding.kept)
    freed = take_away(found) if yes else 0
    if as_json:
        print(json.dumps({"removed": yes, "freed_bytes": freed, "held": [_item(holding) for holding in found]}))
        return
    for holding in found:
        print(_line(holding))
    if yes:
        remark(f"{gigabytes(freed)} freed. The command itself: pip uninstall laguna-daemon")
    else:
        remark(f"{gigabytes(going)} would be freed. Nothing was removed yet: laguna-daemon uninstall --yes")


def _line(holding: Holding) -> str:
    kept = f"  (stays: {holding.kept})" if holding.kept else ""
    return f"{holding.what:<9} {gigabytes(holding.size):>9}  {holding.path}{kept}"


def _item(holding: Holding) -> dict[str, object]:
    return {"what": holding.what, "path": str(holding.path), "bytes": holding.size, "kept": holding.kept}
