"""What people see: progress and remarks on stderr, answers on stdout, colours only on a terminal."""

from __future__ import annotations

import re
import sys
import time

from rich.console import Console
from rich.markup import escape
from rich.status import Status as Spinner

from laguna_daemon.schemas import ProgressEvent, Usage

_PLAIN_EVERY_S = 5.0
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def harmless(text: str) -> str:
    """``text`` with its control characters escaped, lines and tabs kept: what comes from a repository or a model must
    not command the terminal."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)


def on_one_line(name: str) -> str:
    """A name as one entry of a list, whatever characters it has."""
    return harmless(name).replace("\n", "\\n").replace("\t", "\\t")


def console() -> Console:
    """The console of stderr; NO_COLOR and a pipe turn colours off."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def complain(what: str, advice: str = "") -> None:
    """Say on stderr what went wrong and what to do."""
    out = console()
    out.print(f"[bold red]Error:[/] {escape(harmless(what))}")
    if advice:
        out.print(escape(harmless(advice)))


def remark(message: str) -> None:
    """Say something on stderr that is not an error."""
    console().print(f"[dim]{escape(harmless(message))}[/]")


class Progress:
    """One line of progress: rewritten in place on a terminal, now and then a new line elsewhere."""

    def __init__(self, quiet: bool = False) -> None:
        self._console = console()
        self._quiet = quiet
        self._spinner: Spinner | None = None
        self._last = ""
        self._said_at = 0.0

    def show(self, event: ProgressEvent) -> None:
        """Show the newest state."""
        self.say(describe(event), stage=event.message)

    def say(self, text: str, stage: str = "") -> None:
        """Show ``text``; away from a terminal at once for a new stage, else every few seconds."""
        if self._quiet:
            return
        text = harmless(text)
        if self._console.is_terminal:
            if self._spinner is None:
                self._spinner = self._console.status(escape(text))
                self._spinner.start()
            else:
                self._spinner.update(escape(text))
            return
        now = time.monotonic()
        if stage != self._last or now - self._said_at >= _PLAIN_EVERY_S:
            self._console.print(escape(text))
            self._last, self._said_at = stage, now

    def clear(self) -> None:
        """Take the line away before other output."""
        if self._spinner is not None:
            self._spinner.stop()
            self._spinner = None


def describe(event: ProgressEvent) -> str:
    """One line for a progress event, with counts where they are known."""
    if event.total is None or event.done is None:
        return event.message
    unit = {"prefill": " tokens", "tokens": " tokens"}.get(event.stage, "")
    return f"{event.message} {short(event.done)} of {short(event.total)}{unit}"


def short(number: int) -> str:
    """``96K`` for 96,000; exact below ten thousand."""
    return f"{number:,}" if number < 10_000 else f"{number / 1000:.0f}K"


def usage_line(usage: Usage) -> str:
    """The one line that ends an answer."""
    share = 100 * usage.cached_tokens / usage.prompt_tokens if usage.prompt_tokens else 0
    parts = [
        f"{usage.prompt_tokens:,} prompt tokens, {usage.cached_tokens:,} cached ({share:.0f}%)",
        f"{usage.output_tokens:,} output tokens",
    ]
    if usage.ttft_ms is not None:
        parts.append(f"first token {usage.ttft_ms / 1000:.2f} s")
    parts.append(f"total {usage.total_ms / 1000:.2f} s")
    if usage.finish_reason == "length":
        parts.append("stopped at the output limit")
    if usage.broke_at:
        parts.append(f"prefix not reused from {usage.broke_at}")
    return " · ".join(parts)


def read_stdin() -> str:
    """What is piped in; empty when standard input is a terminal, closed or not readable."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return ""
    try:
        return sys.stdin.buffer.read().decode(errors="replace")
    except OSError:
        return ""
