"""What a refactoring looks like: to a person, lines and a diff; to a program, JSON."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from laguna_daemon import edits
from laguna_daemon.cli.output import Progress, complain, remark, usage_line
from laguna_daemon.edits.safety import printable
from laguna_daemon.schemas import (
    CheckEvent,
    Event,
    FileEvent,
    NoticeEvent,
    PlanEvent,
    ProgressEvent,
    RefusalEvent,
    ReportEvent,
    RoundEvent,
    TextEvent,
    ThinkingEvent,
    TurnEvent,
)

_SHOWN = 12


class Person:
    """The diff on stdout, everything else on stderr; with ``diffs`` off, stdout is left to a patch."""

    def __init__(self, *, diffs: bool = True) -> None:
        self._progress = Progress()
        self._diffs = diffs

    def event(self, event: Event) -> None:
        """Show what has happened."""
        if isinstance(event, ProgressEvent):
            self._progress.show(event)
        elif isinstance(event, FileEvent):
            if event.done:
                self._progress.say(f"{event.operation} {printable(event.path)}", stage="edits")
        elif isinstance(event, TextEvent | ThinkingEvent):
            self._progress.clear()
            print(event.text, end="", file=sys.stderr, flush=True)
        elif line := _line(event):
            self._progress.clear()
            remark(line)

    def diff(self, changes: edits.ChangeSet) -> None:
        """The diff and its summary."""
        self._progress.clear()
        if not self._diffs:
            return
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        sys.stdout.write(edits.render(changes, colour=colour))
        print(edits.summary(changes), flush=True)

    def written(self, edit: str | None, *, undone: bool = False) -> None:
        """Say what was written, and how to have it back."""
        if undone:
            remark("The edits were undone: every file is as it was.")
        else:
            remark(f"Written. To take it back: laguna-daemon undo {edit}")

    def patched(self, patch: Path, data: bytes) -> None:
        """A patch for stdout is printed instead of the diff."""
        if str(patch) == "-":
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
        else:
            remark(f"The patch is in {patch}: git apply {patch}")

    def result(self, report: ReportEvent) -> None:
        """What was not done and why, and what it cost."""
        self._progress.clear()
        for item in report.skipped:
            remark(f"Skipped: {printable(item.path)}: {item.reason}")
        if report.missing:
            remark(f"Not done, the model said nothing about: {_listed(report.missing)}")
        for refused in report.refused:
            complain(f"Refused: {refused.message}")
        for note in report.notes:
            remark(note)
        if report.dirty:
            remark(f"Had uncommitted changes before: {_listed(report.dirty)}")
        if report.outcome == "nothing":
            remark("There is nothing to change.")
        remark(f"{_count(report.rounds, 'round')}, {_count(report.turns, 'turn')} · {usage_line(report.usage)}")

    def end(self) -> None:
        """Take the progress away."""
        self._progress.clear()


class Machine:
    """JSON on stdout: one object (``whole``) or one a line; progress still on stderr."""

    def __init__(self, root: Path, *, whole: bool) -> None:
        self._whole = whole
        self._progress = Progress()
        self._notices: list[str] = []
        self._checks: list[dict[str, Any]] = []
        self._plan: dict[str, Any] | None = None
        self._found: dict[str, Any] = {
            "root": str(root),
            "applied": False,
            "edit": None,
            "undone": False,
            "patch": None,
            "diffs": [],
        }
        self._turns: list[dict[str, Any]] = []

    def event(self, event: Event) -> None:
        """Print it, or keep it for the end."""
        if isinstance(event, ProgressEvent):
            self._progress.show(event)
        elif isinstance(event, NoticeEvent):
            self._notices.append(event.message)
        elif isinstance(event, PlanEvent):
            self._plan = event.model_dump(exclude={"kind"})
        elif isinstance(event, CheckEvent):
            self._checks.append(event.model_dump(exclude={"kind"}))
        elif isinstance(event, TurnEvent):
            self._turns.append(event.model_dump(exclude={"kind"}))
        if not self._whole:
            print(event.model_dump_json(), flush=True)

    def diff(self, changes: edits.ChangeSet) -> None:
        """Keep the diff, one for each round that wrote something."""
        self._found["diffs"].append(edits.render(changes))

    def written(self, edit: str | None, *, undone: bool = False) -> None:
        """Note what was written."""
        self._found |= {"applied": not undone, "edit": edit, "undone": undone}

    def patched(self, patch: Path, data: bytes) -> None:
        """Name the patch; for ``-`` its text is part of the object."""
        self._found["patch"] = data.decode(errors="replace") if str(patch) == "-" else str(patch)

    def result(self, report: ReportEvent) -> None:
        """Print the one object."""
        self._progress.clear()
        if not self._whole:
            return
        import orjson

        whole = {
            **self._found,
            "plan": self._plan,
            "report": report.model_dump(exclude={"kind"}),
            "turns": self._turns,
            "checks": self._checks,
            "notices": self._notices,
        }
        sys.stdout.buffer.write(orjson.dumps(whole, option=orjson.OPT_INDENT_2) + b"\n")
        sys.stdout.flush()

    def end(self) -> None:
        """Take the progress away."""
        self._progress.clear()


def _line(event: Event) -> str:
    """One line about an event that is shown as it comes; empty for others."""
    if isinstance(event, NoticeEvent):
        return event.message
    if isinstance(event, PlanEvent) and event.files:
        names = f" by {', '.join(event.identifiers)}" if event.identifiers else ""
        return f"Plan: {_count(len(event.files), 'file')} found{names}, {_count(len(event.batches), 'turn')}."
    if isinstance(event, RoundEvent) and event.round > 1:
        return f"Round {event.round} of {event.rounds}: {event.reason}."
    if isinstance(event, RefusalEvent):
        return "Refused: " + event.message.split("\n", 1)[0]
    if isinstance(event, CheckEvent):
        return f"The check {'passed' if event.exit_code == 0 else f'failed with exit code {event.exit_code}'}."
    return ""


def _listed(paths: list[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(map(printable, paths[:_SHOWN])) + more


def _count(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number:,} {what}s"
