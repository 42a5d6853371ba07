"""``laguna-daemon ask``: one question about a repository."""

from __future__ import annotations

import math
import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from laguna_daemon.cli.output import Progress, harmless, read_stdin, remark, usage_line
from laguna_daemon.errors import ParameterRefused, UsageError
from laguna_daemon.lifecycle import ensure_running
from laguna_daemon.schemas import (
    AskRequest,
    Event,
    NoticeEvent,
    ProgressEvent,
    Reference,
    TextEvent,
    ThinkingEvent,
    UsageEvent,
)
from laguna_daemon.service import roots


def ask(
    question: Annotated[list[str] | None, typer.Argument(help="The question; joined with standard input.")] = None,
    repo: Annotated[Path | None, typer.Option(help="The repository; else the one around this folder.")] = None,
    file: Annotated[list[str] | None, typer.Option(help="A file it is about: PATH or PATH:10-20.")] = None,
    no_context: Annotated[bool, typer.Option("--no-context", help="Ask without any repository.")] = False,
    conversation: Annotated[str | None, typer.Option(help="Go on with this conversation.")] = None,
    thinking: Annotated[
        bool | None, typer.Option("--thinking/--no-thinking", help="Let the model reason first.")
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Longest answer, in tokens.")] = None,
    temperature: Annotated[float | None, typer.Option(min=0.0, help="0 is greedy.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the sampling.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object when done.")] = False,
    stream_json: Annotated[bool, typer.Option("--stream-json", help="One JSON object a line.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Allow the home folder or / as root.")] = False,
) -> None:
    """Ask a question about a repository and stream the answer."""
    if json_ and stream_json:
        raise UsageError("--json and --stream-json exclude each other.")
    if no_context and (repo or file):
        raise UsageError(
            "--no-context asks without any repository, and --repo and --file name what to read.",
            "Leave one of them out.",
        )
    if temperature is not None and not math.isfinite(temperature):
        raise ParameterRefused(f"temperature is {temperature}.", "It must lie between 0 and 2.")
    text = _question(question or [])
    root = None if no_context else roots.find(repo or roots.here(), repo is not None, force)
    request = AskRequest(
        root=str(root) if root else None,
        question=text,
        conversation=conversation,
        references=[reference(item) for item in file or []],
        no_context=no_context,
        thinking=thinking,
        max_tokens=max_tokens,
        temperature=temperature,
        seed=seed,
        force=force,
    )
    from laguna_daemon.api import client

    ensure_running()
    show = _Machine(json_) if json_ or stream_json else _Person()
    with closing(client.ask(request)) as events:
        try:
            for event in events:
                show.event(event)
        finally:
            show.end()


def reference(text: str) -> Reference:
    """Read ``PATH``, ``PATH:10`` or ``PATH:10-20``."""
    path, colon, lines = text.rpartition(":")
    first, _, last = lines.partition("-")
    if not colon or not first.isdigit() or (last and not last.isdigit()):
        return Reference(path=text)
    begin, end = int(first), int(last or first)
    if not 1 <= begin <= end:
        raise UsageError(f"{text} names no lines.", "Lines are counted from 1, and the last comes after the first.")
    return Reference(path=path, first_line=begin, last_line=end)


def _question(words: list[str]) -> str:
    text = "\n\n".join(part for part in (" ".join(words).strip(), read_stdin().strip()) if part)
    if not text:
        raise UsageError(
            "The question is empty.", 'Give it as an argument, laguna-daemon ask "...", or on standard input.'
        )
    return text


class _Person:
    """For people: the answer on stdout as it comes, the rest on stderr."""

    def __init__(self) -> None:
        self._progress = Progress()
        self._line_open = False
        self._thinking = False

    def event(self, event: Event) -> None:
        if isinstance(event, ProgressEvent):
            self._progress.show(event)
            return
        self._progress.clear()
        if isinstance(event, TextEvent):
            if self._thinking:
                self._thinking = False
                print(file=sys.stderr, flush=True)
            sys.stdout.write(harmless(event.text) if sys.stdout.isatty() else event.text)
            sys.stdout.flush()
            self._line_open = not event.text.endswith("\n")
        elif isinstance(event, ThinkingEvent):
            self._thinking = True
            print(harmless(event.text), end="", file=sys.stderr, flush=True)
        elif isinstance(event, NoticeEvent):
            remark(event.message)
        elif isinstance(event, UsageEvent):
            self.end()
            remark(usage_line(event.usage))

    def end(self) -> None:
        self._progress.clear()
        if self._line_open:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._line_open = False


class _Machine:
    """For programs: JSON on stdout, and progress still on stderr."""

    def __init__(self, whole: bool) -> None:
        self._whole = whole
        self._progress = Progress()
        self._notices: list[str] = []
        self._thinking: list[str] = []

    def event(self, event: Event) -> None:
        if isinstance(event, ProgressEvent):
            self._progress.show(event)
        elif isinstance(event, NoticeEvent):
            self._notices.append(event.message)
        elif isinstance(event, ThinkingEvent):
            self._thinking.append(event.text)
        if not self._whole:
            print(event.model_dump_json(), flush=True)
        elif isinstance(event, UsageEvent):
            self._progress.clear()
            answer = {
                "text": event.text,
                "thinking": "".join(self._thinking),
                "notices": self._notices,
                "conversation": event.conversation,
                "usage": event.usage.model_dump(),
            }
            _print_json(answer)

    def end(self) -> None:
        self._progress.clear()


def _print_json(value: object) -> None:
    import orjson

    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n")
    sys.stdout.flush()
