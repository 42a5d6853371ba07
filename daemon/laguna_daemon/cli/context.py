"""``laguna-daemon context``: what is in the prompt of a repository, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from laguna_daemon.cli.output import harmless, on_one_line, remark
from laguna_daemon.errors import UsageError
from laguna_daemon.lifecycle import ensure_running
from laguna_daemon.schemas import ContextRequest
from laguna_daemon.service import roots

_SHOWN = 30


def context(
    action: Annotated[list[str] | None, typer.Argument(help="Nothing, or: why PATH")] = None,
    repo: Annotated[Path | None, typer.Option(help="The repository; else the one around this folder.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    all_: Annotated[bool, typer.Option("--all", help="List every file, not only the largest.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Allow the home folder or / as root.")] = False,
) -> None:
    """Show what is in the prompt, tokens per file, and what was left out and why."""
    why = _why(action or [])
    root = roots.find(repo or roots.here(), repo is not None, force)
    from laguna_daemon.api import client

    ensure_running()
    request = ContextRequest(root=str(root), why=why, force=force)
    found = client.post("/v1/context", request)
    if json_:
        sys.stdout.buffer.write(orjson.dumps(found, option=orjson.OPT_INDENT_2) + b"\n")
    elif why is not None:
        print(harmless(found["text"]))
    else:
        _print(found, all_)


def _why(action: list[str]) -> str | None:
    if not action:
        return None
    if len(action) != 2 or action[0] != "why":
        raise UsageError("Unknown words after context.", "Either nothing, or: laguna-daemon context why PATH")
    return action[1]


def _print(found: dict[str, Any], all_: bool) -> None:
    budget = found["budget"]
    print(f"{found['root']}: {found['prefix_tokens']:,} tokens in front of every question")
    print(
        f"snapshot {found['snapshot'][:12]}: {found['snapshot_tokens']:,} tokens; changes since: "
        f"{found['overlay_tokens']:,}; context {budget['context']:,}"
    )
    files = sorted(found["files"], key=lambda file: -(file["tokens"] + file["overlay_tokens"]))
    shown = [file for file in files if file["tokens"] or file["overlay_tokens"]]
    for file in shown if all_ else shown[:_SHOWN]:
        print(f"{file['tokens'] + file['overlay_tokens']:>9,}  {file['tier']:<8} {on_one_line(file['path'])}")
    if len(shown) > _SHOWN and not all_:
        print(f"{'':>9}  and {len(shown) - _SHOWN:,} more files (--all lists them)")
    _print_counts("Tiers", found["tiers"])
    _print_counts("Without text", found["skipped"])
    _print_counts("Left out", found["left_out"])
    if found["findings"]:
        print(f"Secrets replaced by markers: {len(found['findings']):,}")
        for finding in found["findings"]:
            print(f"           {on_one_line(finding['path'])}:{finding['line']}: {finding['kind']}")
    for notice in found["notices"]:
        remark(notice)


def _print_counts(title: str, counts: dict[str, int]) -> None:
    if counts:
        print(f"{title}: " + ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items())))
