"""A refactoring from the command line: proposed by the daemon; shown, written, checked and undone here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import typer

from laguna_daemon import edits
from laguna_daemon.api import client
from laguna_daemon.cli.check import run_check
from laguna_daemon.cli.proposals import Person
from laguna_daemon.cli.writing import Writer
from laguna_daemon.edits.safety import printable
from laguna_daemon.errors import CheckFailed, EditsRefused
from laguna_daemon.schemas import CheckEvent, Event, FailedCheck, ProposalEvent, RefactorRequest, ReportEvent
from laguna_daemon.service.refactoring.turn import total
from laguna_daemon.service.refactoring.wire import described, from_wire


@dataclass(frozen=True)
class Wish:
    """What is to become of the edits: ``how`` is apply, ask, show or patch."""

    how: str
    check: str | None = None
    keep: bool = False
    partial: bool = False
    self_starting: bool = False
    patch: Path | None = None


class View(Protocol):
    """Where a job is shown: to a person or to a program."""

    def event(self, event: Event) -> None:
        """Something has happened."""

    def diff(self, changes: edits.ChangeSet) -> None:
        """The edits, before anything is written."""

    def written(self, edit: str | None, *, undone: bool = False) -> None:
        """The edits were written, or taken back."""

    def patched(self, patch: Path, data: bytes) -> None:
        """A patch was written to a file, or is to be printed."""

    def result(self, report: ReportEvent) -> None:
        """The end: what was done, what was not and why."""

    def end(self) -> None:
        """Nothing follows, whatever has happened."""


class Job:
    """One refactoring from the command line."""

    def __init__(
        self,
        request: RefactorRequest,
        root: Path,
        wish: Wish,
        show: View,
        confirm: Callable[[str], bool] = lambda question: typer.confirm(question, default=False, err=True),
    ) -> None:
        self._request = request
        self._root = root
        self._wish = wish
        self._show = show
        self._confirm = confirm
        self._writer = Writer(root)
        self._reports: list[ReportEvent] = []

    def run(self) -> None:
        """Propose, show and, if that is wished, write and check. Raises EditsRefused and CheckFailed."""
        report, changes = self._propose(self._request)
        if changes is None:
            self._show.result(report)
            if report.outcome in ("refused", "incomplete"):
                raise EditsRefused(_why_none(report), "Say it differently, or allow more --max-rounds.")
            return
        self._show.diff(changes)
        try:
            self._finish(report, changes)
        finally:
            self._show.result(_merged(self._reports, self._writer.changes))

    def _finish(self, report: ReportEvent, changes: edits.ChangeSet) -> None:
        wish = self._wish
        if wish.how == "show":
            return
        if report.outcome == "incomplete" and wish.how != "ask" and not wish.partial:
            raise EditsRefused(
                f"Planned files were neither edited nor skipped: {_shortened(report.missing)}. Nothing was written.",
                "Write what there is with --partial, or allow more --max-rounds.",
            )
        if wish.how == "patch":
            assert wish.patch is not None
            data = edits.to_patch(changes, object_format=edits.object_format(self._root))
            if str(wish.patch) != "-":
                wish.patch.write_bytes(data)
            self._show.patched(wish.patch, data)
            return
        agreed = wish.how == "apply" or self._confirm(f"Write these edits to {self._root}?")
        if agreed and self._agreed(changes):
            self._write(report, changes)

    def _agreed(self, changes: edits.ChangeSet) -> bool:
        """Whether files that take effect by themselves may be written: agreement to the whole does not cover them."""
        found = [] if self._wish.self_starting else edits.self_starting(changes.paths)
        if not found:
            return True
        what = (
            f"Other programs run or obey these without being asked: {_shortened([printable(path) for path in found])}."
        )
        if self._wish.how == "ask":
            return self._confirm(f"{what} Write them too?")
        raise EditsRefused(
            f"{what} Nothing of these edits was written.",
            "Look at them with --dry-run; then allow them with --allow-self-starting, or leave them out with --paths.",
        )

    def _write(self, report: ReportEvent, changes: edits.ChangeSet) -> None:
        check = self._wish.check
        try:
            self._show.written(self._writer.apply(changes))
            failed = self._check(check, report) if check is not None else None
        except BaseException:  # an error on the way, Ctrl-C too: unchecked edits do not stay
            if check is not None:
                self._take_back()
            raise
        if failed is not None:
            kept = not self._take_back()
            what = "kept (--keep)" if kept else "undone"
            raise CheckFailed(
                f"The check failed with exit code {failed.exit_code}: {failed.command}. The edits were {what}.",
                "Its output is above." if isinstance(self._show, Person) else "Its output is in checks.",
            )

    def _take_back(self) -> bool:
        if self._wish.keep or not self._writer.undo():
            return False
        self._show.written(None, undone=True)
        return True

    def _check(self, command: str, report: ReportEvent) -> CheckEvent | None:
        """Run the check, and let the model mend what it finds while there are rounds; the failure that remains."""
        while True:
            checked = run_check(command, self._root, echo=isinstance(self._show, Person))
            self._show.event(checked)
            left = self._request.max_rounds - sum(one.rounds for one in self._reports)
            if checked.exit_code == 0:
                return None
            if left < 1 or self._request.structured:
                return checked
            failure = FailedCheck(command=command, exit_code=checked.exit_code, output=checked.output)
            update = {"check": failure, "conversation": report.conversation, "max_rounds": left}
            report, changes = self._propose(self._request.model_copy(update=update))
            if changes is None:
                return checked
            self._show.diff(changes)
            if self._wish.how == "ask" and not self._confirm("Write these corrections?"):
                return checked
            if not self._agreed(changes):
                return checked
            self._show.written(self._writer.apply(changes))

    def _propose(self, request: RefactorRequest) -> tuple[ReportEvent, edits.ChangeSet | None]:
        changes = None
        with closing(client.refactor(request)) as events:
            for event in events:
                self._show.event(event)
                if isinstance(event, ProposalEvent):
                    changes = from_wire(self._root, event.files)
                elif isinstance(event, ReportEvent):
                    self._reports.append(event)
                    return event, changes
        raise EditsRefused("The refactoring ended without its report; nothing was written.", "Try again.")


def _merged(reports: list[ReportEvent], written: edits.ChangeSet | None) -> ReportEvent:
    """One report of all that was proposed: the first, with what the corrections of a check have added."""
    first = reports[0]
    if len(reports) == 1:
        return first
    update = {
        "done": described(written.changes) if written is not None else first.done,
        "refused": reports[-1].refused,
        "notes": list(dict.fromkeys(note for one in reports for note in one.notes)),
        "rounds": sum(one.rounds for one in reports),
        "turns": sum(one.turns for one in reports),
        "usage": total([one.usage for one in reports]),
    }
    return first.model_copy(update=update)


def _why_none(report: ReportEvent) -> str:
    if not report.refused:
        return f"No edit came for the planned files: {_shortened(report.missing)}. Nothing was written."
    if report.unsaved:
        return f"Unsaved in an editor: {_shortened(report.unsaved)}. Nothing was written."
    named = _shortened([item.path or "the answer" for item in report.refused])
    count = len(report.refused)
    blocks = "1 edit was" if count == 1 else f"{count} edits were"
    return f"{blocks} refused ({named}; round {report.rounds} was the last). Nothing was written."


def _shortened(paths: list[str]) -> str:
    return ", ".join(paths[:8]) + (f" and {len(paths) - 8} more" if len(paths) > 8 else "")
