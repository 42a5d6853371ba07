"""All commands put together, and what becomes of their errors."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from types import ModuleType

import typer
from typer.exceptions import TyperException

from laguna_context.errors import ContextError
from laguna_daemon import __version__
from laguna_daemon.cli.output import complain
from laguna_daemon.errors import ExitCode, LagunaError, RepositoryError, UsageError

# Command -> module of this folder and function there; groups of commands are a module's ``app``. A module is loaded
# when its command is wanted, or when all are listed: together they cost half a second that nobody should wait for.
_COMMANDS = {
    "ask": ("ask", "ask"),
    "context": ("context", "context"),
    "warm": ("warm", "warm"),
    "start": ("lifecycle", "start"),
    "stop": ("lifecycle", "stop"),
    "status": ("lifecycle", "status"),
    "logs": ("lifecycle", "logs"),
    "lsp": ("lsp", "command"),
    "refactor": ("refactor", "refactor"),
    "undo": ("edits", "undo"),
    "doctor": ("doctor", "doctor"),
    "gc": ("removal", "gc"),
    "uninstall": ("removal", "uninstall"),
}
_GROUPS = {"conversations": "conversations", "edits": "edits", "engine": "engine", "service": "unit"}


def build_app(argv: list[str]) -> typer.Typer:
    """The command line as far as ``argv`` needs it: one command, or all of them."""
    app = typer.Typer(
        name="laguna-daemon",
        help="A private coding assistant that has read the whole repository.",
        invoke_without_command=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_common)
    wanted = argv[0] if argv else ""
    known = wanted in _COMMANDS or wanted in _GROUPS
    for name, (module, function) in _COMMANDS.items():
        if not known or name == wanted:
            app.command(name)(getattr(_load(module), function))
    for name, module in _GROUPS.items():
        if not known or name == wanted:
            app.add_typer(_load(module).app, name=name)
    return app


def _load(module: str) -> ModuleType:
    return importlib.import_module(f"laguna_daemon.cli.{module}")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"laguna-daemon {__version__}")
        raise typer.Exit


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
        result = build_app(argv)(args=argv, standalone_mode=False)
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
        _drop_output()  # its reader has gone; nothing more to say
        return ExitCode.OK
    except ContextError as error:
        return _report(RepositoryError(error.what, error.advice))
    except LagunaError as error:
        return _report(error)
    except OSError as error:
        _drop_output()
        place = f": {error.filename}" if error.filename else ""
        what = f"The system refused to read or write: {error.strerror or error}{place}"
        return _report(LagunaError(what, "Free the space or mend the rights there, then try again."))
    except Exception as error:
        return _report(LagunaError(f"Unexpected {type(error).__name__}: {error}", "LAGUNA_DEBUG=1 shows more."))


def _drop_output() -> None:
    """Let go of what standard output still holds, lest the interpreter's exit fails on it once more."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(error: LagunaError) -> int:
    complain(error.what, error.advice)
    if os.environ.get("LAGUNA_DEBUG"):
        traceback.print_exc()
    return error.exit_code
