"""laguna-daemon engine: install, list, remove the engine; download checkpoints."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from laguna_daemon.cli import switch
from laguna_daemon.cli.output import Progress, remark
from laguna_daemon.config import load_settings
from laguna_daemon.engine import install as engines
from laguna_daemon.engine.install import Installation, Step, Stored
from laguna_daemon.engine.profile import load_profile
from laguna_daemon.engine.setup.lockfile import KINDS
from laguna_daemon.engine.setup.storage import gigabytes
from laguna_daemon.errors import UsageError

app = typer.Typer(help="Install, list and remove the engine.", no_args_is_help=True, rich_markup_mode=None)

_Kind = Annotated[str, typer.Argument(metavar="cpu|gpu", help="Which engine.")]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
_Path = Path | None


@app.command("install")
def install(
    kind: _Kind,
    python: Annotated[
        _Path, typer.Option(help="Python that makes the environment (default: $LAGUNA_PYTHON, else this one).")
    ] = None,
    engine_python: Annotated[
        _Path, typer.Option(help="Use this Python, which has vLLM, instead of a new environment.")
    ] = None,
    model: Annotated[_Path, typer.Option(help="Use this model folder instead of the small model (cpu).")] = None,
    as_json: _Json = False,
) -> None:
    """Install the engine into an environment of its own; for cpu also a small model.

    Says first what it costs. Can be interrupted and run again: it continues. Where pip downloads from is set as
    usual, in pip.conf or PIP_* variables.
    """
    _check_kind(kind)
    settings = load_settings().engine
    shown = _Shown()
    try:
        result = engines.install(
            kind,
            progress=shown,
            python=python,
            engine_python=engine_python or settings.python,
            model=model or (settings.model if kind == "cpu" else None),
        )
    finally:
        shown.clear()
    if as_json:
        _print_json(_described(kind, result))
    elif result.already:
        remark(f"The {kind} engine is already installed in {result.home.path}.")
    else:
        remark(f"The {kind} engine is installed in {result.home.path}.")
    if kind == "gpu" and not as_json:
        remark("Model checkpoints are downloaded on request: laguna-daemon engine download PROFILE")


@app.command("list")
def list_engines(as_json: _Json = False) -> None:
    """What is installed, and the disk space it takes."""
    stored = engines.stored()
    if as_json:
        homes = {kind: _home(kind) for kind in KINDS}
        _print_json({"engines": homes, "stored": [_item(item) for item in stored]})
        return
    for kind in KINDS:
        home = engines.installed(kind)
        if home is None:
            print(f"{kind}: not installed (laguna-daemon engine install {kind} takes {engines.cost(kind)})")
        else:
            print(f"{kind}: {home.python}" + ("" if home.current else " (of an earlier version; install it again)"))
    for item in stored:
        print(f"{item.what:<10} {item.name:<28} {gigabytes(item.size):>8}  {item.path}")


@app.command("remove")
def remove(kind: _Kind, as_json: _Json = False) -> None:
    """Remove an engine, its small model and what was downloaded for it. Your own folders stay."""
    _check_kind(kind)
    freed = engines.remove(kind)
    if as_json:
        _print_json({"kind": kind, "freed_bytes": freed})
    else:
        remark(f"Removed the {kind} engine: {gigabytes(freed)} freed.")


@app.command("download")
def download(
    profile: Annotated[str, typer.Argument(help="The profile whose model and draft are wanted.")],
    revision: Annotated[str, typer.Option(help="Commit of the model, for a profile that pins none.")] = "",
    as_json: _Json = False,
) -> None:
    """Download a profile's model checkpoints at their pinned revisions.

    Says first what it costs. Can be interrupted and run again: it continues. Every file is checked.
    """
    from laguna_daemon.engine.setup import download as hub

    wanted = hub.checkpoints(load_profile(profile))
    if not wanted:
        raise UsageError(f"The profile {profile} has no checkpoint to download.", "See laguna-daemon engine install.")
    if revision:
        wanted[0] = replace(wanted[0], revision=revision)
    shown = _Shown()
    results = []
    try:
        for checkpoint in wanted:
            fresh = hub.download(checkpoint, progress=shown)
            results.append({**asdict(checkpoint), "path": str(checkpoint.folder), "already": not fresh})
    finally:
        shown.clear()
    if as_json:
        _print_json({"profile": profile, "checkpoints": results})
    for result in results if not as_json else []:
        remark(f"{result['name']} is {'already ' if result['already'] else ''}in {result['path']}.")


class _Shown:
    """Steps on stderr: the cost and whatever is said once as lines, the rest as progress."""

    def __init__(self) -> None:
        self._progress = Progress()

    def __call__(self, step: Step) -> None:
        if step.stage in ("cost", "wait"):
            self._progress.clear()
            remark(step.message[:1].upper() + step.message[1:] + ".")
        elif step.stage != "done":
            self._progress.say(_line(step), stage=step.stage)

    def clear(self) -> None:
        """Take the line away."""
        self._progress.clear()


def _line(step: Step) -> str:
    if not step.total:
        return step.message
    if step.unit == "bytes":
        return f"{step.message} ({gigabytes(step.done)} of {gigabytes(step.total)})"
    return f"{step.message} ({step.done} of {step.total} {step.unit})"


def _described(kind: str, result: Installation) -> dict[str, object]:
    return {
        "kind": kind,
        "path": str(result.home.path),
        "python": str(result.home.python),
        "lock": result.home.lock,
        "model": str(result.model) if result.model else None,
        "already": result.already,
    }


def _item(item: Stored) -> dict[str, object]:
    return {"what": item.what, "name": item.name, "path": str(item.path), "bytes": item.size}


def _home(kind: str) -> dict[str, object] | None:
    home = engines.installed(kind)
    if home is None:
        return None
    return {"path": str(home.path), "python": str(home.python), "lock": home.lock, "current": home.current}


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise UsageError(f"There is no engine of the kind {kind}.", f"The kinds are {' and '.join(KINDS)}.")


def _print_json(value: object) -> None:
    json.dump(value, sys.stdout)
    sys.stdout.write("\n")


app.command("use")(switch.use)
app.command("restart")(switch.restart)
