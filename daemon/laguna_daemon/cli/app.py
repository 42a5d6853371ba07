"""All commands put together, and what becomes of their errors."""

from __future__ import annotations

import os
import sys
import traceback

import typer
from typer.exceptions import TyperException

from laguna_context.errors import ContextError
from laguna_daemon import __version__
from laguna_daemon.cli import (
    ask,
    context,
    conversations,
    doctor,
    edits,
    engine,
    lifecycle,
    lsp,
    refactor,
    removal,
    switch,
    unit,
    warm,
)
from laguna_daemon.cli.output import complain
from laguna_daemon.errors import ExitCode, LagunaError, RepositoryError, UsageError

app = typer.Typer(
    name="laguna-daemon",
    help="A private coding assistant that has read the whole repository.",
    invoke_without_command=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("ask")(ask.ask)
app.command("context")(context.context)
app.command("warm")(warm.warm)
app.command("start")(lifecycle.start)
app.command("stop")(lifecycle.stop)
app.command("status")(lifecycle.status)
app.command("logs")(lifecycle.logs)
app.command("lsp", help=lsp.run.__doc__)(lsp.command)
app.command("refactor")(refactor.refactor)
app.command("undo")(edits.undo)
app.add_typer(conversations.app, name="conversations")
app.add_typer(edits.app, name="edits")
app.command("doctor")(doctor.doctor)
app.command("gc")(removal.gc)
app.command("uninstall")(removal.uninstall)
engine.app.command("use")(switch.use)
engine.app.command("restart")(switch.restart)
app.add_typer(engine.app, name="engine")
app.add_typer(unit.app, name="service")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"laguna-daemon {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """A private coding assistant that has read the whole repository."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def run_app(argv: list[str]) -> int:
    """Run one command and return its exit code; every error becomes one or two lines on stderr."""
    try:
        result = app(args=argv, standalone_mode=False)
        return int(result) if isinstance(result, int) else ExitCode.OK
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except typer.Exit as done:
        return int(done.exit_code)
    except TyperException as error:
        return _report(UsageError(f"{error.format_message()}", "laguna-daemon --help lists the commands."))
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone; nothing more to say, and no message from the interpreter's exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except ContextError as error:
        return _report(RepositoryError(error.what, error.advice))
    except LagunaError as error:
        return _report(error)
    except Exception as error:
        return _report(LagunaError(f"Unexpected {type(error).__name__}: {error}", "LAGUNA_DEBUG=1 shows more."))


def _report(error: LagunaError) -> int:
    complain(error.what, error.advice)
    if os.environ.get("LAGUNA_DEBUG"):
        traceback.print_exc()
    return error.exit_code
