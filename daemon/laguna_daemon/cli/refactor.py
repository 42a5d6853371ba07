"""``laguna-daemon refactor``: edits of many files from one instruction, shown, applied, checked, undone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from laguna_daemon.cli.output import read_stdin
from laguna_daemon.errors import UsageError
from laguna_daemon.lifecycle import ensure_running
from laguna_daemon.schemas import RefactorRequest
from laguna_daemon.service import roots


def refactor(
    instruction: Annotated[list[str] | None, typer.Argument(help="What to do; joined with standard input.")] = None,
    repo: Annotated[Path | None, typer.Option(help="The repository; else the one around this folder.")] = None,
    paths: Annotated[list[str] | None, typer.Option(metavar="GLOB", help="Touch only files that match.")] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Write the edits without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the edits, write nothing.")] = False,
    patch: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a patch for git apply (- is stdout).")
    ] = None,
    check: Annotated[str | None, typer.Option(metavar="CMD", help="Your command that must succeed afterwards.")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the edits even if the check fails.")] = False,
    partial: Annotated[bool, typer.Option("--partial", help="Write even if planned files were passed over.")] = False,
    max_rounds: Annotated[int, typer.Option(min=1, max=20, help="Rounds of correction, the first included.")] = 3,
    allow_ignored: Annotated[bool, typer.Option("--allow-ignored", help="Let edits touch ignored files.")] = False,
    allow_self_starting: Annotated[
        bool, typer.Option("--allow-self-starting", help="With --apply, write workflows, .envrc and their like too.")
    ] = False,
    structured: Annotated[bool, typer.Option("--structured", help="Bind the answer to the planned lines.")] = False,
    thinking: Annotated[
        bool | None, typer.Option("--thinking/--no-thinking", help="Let the model reason first.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object when done.")] = False,
    stream_json: Annotated[bool, typer.Option("--stream-json", help="One JSON object a line.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Allow the home folder or / as root.")] = False,
) -> None:
    """Refactor a repository: show the edits, and write all of them or none."""
    text = "\n\n".join(part for part in (" ".join(instruction or []).strip(), read_stdin().strip()) if part)
    if not text:
        raise UsageError("The instruction is empty.", 'Say what to do: laguna-daemon refactor "rename `a` to `b`".')
    if json_ and stream_json:
        raise UsageError("--json and --stream-json exclude each other.")
    ask = not (json_ or stream_json) and sys.stdin.isatty() and sys.stderr.isatty()
    wish = _wish(apply, dry_run, patch, check, ask)
    root = roots.find(repo or roots.here(), repo is not None, force)
    request = RefactorRequest(
        root=str(root),
        instruction=text,
        paths=paths or [],
        max_rounds=max_rounds,
        allow_ignored=allow_ignored,
        structured=structured,
        thinking=thinking,
        force=force,
    )
    from laguna_daemon.cli.job import Job, Wish
    from laguna_daemon.cli.proposals import Machine, Person

    ensure_running()
    show = Machine(root, whole=json_) if json_ or stream_json else Person(diffs=str(patch) != "-")
    try:
        Job(request, root, Wish(wish, check, keep, partial, allow_self_starting, patch), show).run()
    finally:
        show.end()


def _wish(apply: bool, dry_run: bool, patch: Path | None, check: str | None, ask: bool) -> str:
    chosen = [name for name, on in (("apply", apply), ("show", dry_run), ("patch", patch is not None)) if on]
    if len(chosen) > 1:
        raise UsageError("--apply, --dry-run and --patch exclude each other.")
    how = chosen[0] if chosen else "ask" if ask else "show"
    if check is not None and how in ("show", "patch"):
        raise UsageError(
            "A check needs edits that are written.", "Add --apply; if the check fails, they are undone again."
        )
    return how
