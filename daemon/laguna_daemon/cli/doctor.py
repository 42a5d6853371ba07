"""``laguna-daemon doctor``: what stands in the way of the engine, and whether a running one works as it should."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

from laguna_daemon import lifecycle
from laguna_daemon.cli.output import remark
from laguna_daemon.config import Settings, load_settings
from laguna_daemon.engine import checks
from laguna_daemon.engine.checks import Finding, Situation, running
from laguna_daemon.engine.gpus import find_gpus
from laguna_daemon.engine.install import installed
from laguna_daemon.engine.profile import Choice
from laguna_daemon.errors import ExitCode, LagunaError
from laguna_daemon.paths import state_dir
from laguna_daemon.schemas import EngineRequest, Proof, Status
from laguna_daemon.service import chosen

_SIGNS = {"error": "✗", "warning": "!", "note": "·"}


def doctor(
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    profile: Annotated[str | None, typer.Option(help="Check this profile instead of the one in use.")] = None,
) -> None:
    """Check GPUs, disk, checkpoints, versions and flags, and try the engine if it runs. Exit code 7 on errors."""
    settings = load_settings()
    status = lifecycle.status()
    choice, situation = _situation(settings, profile, status)
    findings = list(checks.look(situation))
    proof = None
    if status is not None and status.engine.phase == "ready" and status.engine.profile == choice.profile.name:
        proof, more = _examine(choice.profile.name)
        findings += more
    found = checks.ordered(findings)
    if json_:
        print(json.dumps(_described(choice, situation, status, found, proof), indent=2))
    else:
        _show(choice, situation, status, found, proof)
    if checks.errors(found):
        raise typer.Exit(ExitCode.CHECK_FAILED)


def _situation(settings: Settings, profile: str | None, status: Status | None) -> tuple[Choice, Situation]:
    """The profile that is meant: the one named, the one the daemon runs, or the one it would choose."""
    name = profile or (status.engine.profile if status is not None else None)
    choice = chosen.choose(settings, find_gpus(), name or None)
    if not profile:
        reason = (status.engine.reason if status is not None else "") or choice.reason
        choice = Choice(choice.profile, reason)
    else:
        choice = Choice(choice.profile, "named with --profile")
    home = None if choice.profile.kind == "remote" else installed(choice.profile.kind)
    runs = status is not None and status.engine.phase in ("starting", "ready")
    return choice, checks.survey(choice.profile, settings, home, own_engine_runs=runs)


def _examine(profile: str) -> tuple[Proof | None, list[Finding]]:
    from laguna_daemon.api import client

    try:
        proof = Proof.model_validate(client.post("/v1/examine", EngineRequest()))
    except LagunaError as error:
        return None, [Finding("examination", "error", error.what, "The engine runs and does not answer.", error.advice)]
    path, key = state_dir() / "doctor.json", f"{profile} {proof.version}"
    findings = [*running.examined(proof), *running.compared(proof, running.recall(path, key))]
    running.keep(path, key, proof)
    return proof, findings


def _described(
    choice: Choice, situation: Situation, status: Status | None, findings: tuple[Finding, ...], proof: Proof | None
) -> dict[str, Any]:
    return {
        "profile": choice.profile.name,
        "reason": choice.reason,
        "gpus": [asdict(gpu) for gpu in situation.gpus],
        "driver": situation.driver,
        "vllm": ".".join(map(str, situation.vllm)),
        "engine": status.engine.phase if status else "stopped",
        "findings": [asdict(finding) for finding in findings],
        "examination": proof.model_dump() if proof else None,
        "ok": not checks.errors(findings),
    }


def _show(
    choice: Choice, situation: Situation, status: Status | None, findings: tuple[Finding, ...], proof: Proof | None
) -> None:
    profile = choice.profile
    gpus = ", ".join(f"{gpu.name} {gpu.memory_gib:.0f} GiB" for gpu in situation.gpus) or "none"
    print(f"Profile  {profile.name}: {profile.summary} ({choice.reason})")
    print(f"GPUs     {gpus}{f'; driver {situation.driver}' if situation.driver else ''}")
    version = ".".join(map(str, situation.vllm)) or "unknown"
    print(f"Engine   {status.engine.phase if status else 'stopped'}, vLLM {version}")
    if proof is not None:
        print(f"Cache    {proof.cached_again} of {proof.prompt_tokens} tokens of a repeated prompt were reused")
        if proof.acceptance_length is not None:
            print(f"Draft    mean acceptance length {proof.acceptance_length:.2f} over {proof.drafts:,} drafts")
        print(f"Abort    {'not seen' if proof.abort_s is None else f'{proof.abort_s:.2f} s'}")
    for finding in findings:
        print(f"{_SIGNS[finding.severity]} {finding.what} {finding.why}\n  {finding.fix}")
    if not findings:
        remark("Nothing stands in the way.")
