"""An answer as it streams in: edit blocks, and the lines by which the model says what it plans and what it skips."""

from __future__ import annotations

import re
from collections.abc import Callable

from laguna_daemon import edits
from laguna_daemon.schemas import Event, FileEvent, TextEvent
from laguna_daemon.service.refactoring import tasks

_FILE = re.compile(r"^\s*(?:[-*]\s+)?FILE:?\s+`?([^`\n]+?)`?\s*(?:\s[-\u2013\u2014]\s.*|:\s.*|\s\(.*\))?$")
_SKIP = re.compile(r"^\s*(?:[-*]\s+)?SKIP:?\s+`?([^`\s:][^`:\n]*?)`?\s*(?::|\s[-\u2013\u2014])\s*(\S.*?)\s*$")
_OPERATION = {
    edits.Replace: "edit",
    edits.Create: "create",
    edits.Delete: "delete",
    edits.Rename: "rename",
    edits.SetMode: "mode",
}


class Answer:
    """One answer: ``blocks`` and ``problems`` in order, ``named`` and ``skipped`` files, reported as they are read."""

    def __init__(self, report: Callable[[Event], None]) -> None:
        self._parser = edits.Parser()
        self._report = report
        self.named: dict[str, None] = {}
        self.skipped: dict[str, str] = {}

    @property
    def blocks(self) -> list[edits.Block]:
        """The blocks read so far."""
        return self._parser.blocks

    @property
    def problems(self) -> list[edits.Problem]:
        """What could not be read, a block that was cut off left out: it is asked for again, never used."""
        return [problem for problem in self._parser.problems if problem.code != "unfinished"]

    @property
    def cut_off(self) -> edits.Problem | None:
        """The block in which the answer broke off, once ``finish`` was called."""
        return next((problem for problem in self._parser.problems if problem.code == "unfinished"), None)

    def feed(self, text: str) -> None:
        """Take the next piece."""
        self._take(self._parser.feed(text))

    def finish(self) -> None:
        """The answer is over."""
        self._take(self._parser.finish())

    def _take(self, events: list[edits.Event]) -> None:
        for event in events:
            if isinstance(event, edits.Prose):
                self._prose(event.text)
            elif isinstance(event, edits.Began):
                if event.path:
                    self._report(FileEvent(path=event.path, operation=_begun(event.operation), done=False))
            elif not isinstance(event, edits.Problem):
                self._report(FileEvent(path=event.path, operation=_OPERATION[type(event)]))

    def _prose(self, text: str) -> None:
        rest = []
        for line in text.splitlines(keepends=True):
            if skip := _SKIP.match(line):
                self.skipped[_path(skip[1])] = skip[2]
            elif file := _FILE.match(line):
                if (path := _path(file[1])) != tasks.EXAMPLE:
                    self.named[path] = None
            else:
                rest.append(line)
        if rest:
            self._report(TextEvent(text="".join(rest)))


def _path(text: str) -> str:
    return text.strip().removeprefix("./")


def _begun(operation: str) -> str:
    return "edit" if operation == "search" else operation
