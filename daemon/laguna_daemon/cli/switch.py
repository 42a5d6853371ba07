"""``laguna-daemon engine use | restart``: another profile, or a fresh start, of the engine of a running daemon."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from laguna_daemon import lifecycle
from laguna_daemon.cli.output import remark
from laguna_daemon.config import load_settings
from laguna_daemon.engine.profile import load_profile
from laguna_daemon.errors import EngineUnavailable
from laguna_daemon.schemas import EngineRequest, EngineStatus
from laguna_daemon.service import chosen

_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]


def use(
    profile: Annotated[str, typer.Argument(help="A profile's name, or auto: let the GPUs decide.")],
    as_json: _Json = False,
) -> None:
    """Use this profile from now on, also on a running daemon: its engine starts again, requests under way fail.

    A profile that the checks refuse changes nothing. config.toml is left alone; a profile named there wins at the
    daemon's next start.
    """
    if profile != chosen.AUTO:
        load_profile(profile)
    engine = None
    if lifecycle.status() is not None:
        engine = _change(EngineRequest(profile=profile))
    else:
        chosen.remember(profile)
    settled = load_settings().profile
    if as_json:
        print(json.dumps({"profile": profile, "engine": engine.model_dump() if engine else None}))
    elif engine is not None:
        remark(f"The engine starts with the profile {engine.profile} ({engine.reason}).")
    else:
        remark(f"The next daemon starts with the profile {profile}.")
    if settled and settled != profile:
        remark(f"The settings name the profile {settled}: at the daemon's next start they win.")


def restart(as_json: _Json = False) -> None:
    """End the engine of the running daemon and start it again; requests under way fail."""
    if lifecycle.status() is None:
        raise EngineUnavailable("No daemon is running.", "Start it: laguna-daemon start")
    engine = _change(EngineRequest())
    if as_json:
        print(engine.model_dump_json())
    else:
        remark(f"The engine starts again with the profile {engine.profile}.")


def _change(request: EngineRequest) -> EngineStatus:
    from laguna_daemon.api import client

    return EngineStatus.model_validate(client.post("/v1/engine", request))
