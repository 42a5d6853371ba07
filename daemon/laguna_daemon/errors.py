"""Errors a user can meet: what happened and what it means, what to do, and the exit code of the command.

The exit codes are part of the command line's contract and documented in docs/exit-codes.md.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every ``laguna-daemon`` command."""

    OK = 0
    INTERNAL = 1
    USAGE = 2
    REPOSITORY = 3
    ENGINE = 4
    BUDGET = 5
    EDITS_REFUSED = 6
    CHECK_FAILED = 7
    PARAMETER = 8
    INTERRUPTED = 130


class LagunaError(Exception):
    """A failure with a cause the user can read.

    ``what`` says what happened and what it means, ``advice`` what to do about it (may be empty).
    """

    exit_code: ExitCode = ExitCode.INTERNAL

    def __init__(self, what: str, advice: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.what}\n{self.advice}" if self.advice else self.what

    @property
    def kind(self) -> str:
        """The stable, machine-readable name of the error (``repository``, ``engine`` ...)."""
        return self.exit_code.name.lower()


class UsageError(LagunaError):
    """The command or request was not of the form it must have."""

    exit_code = ExitCode.USAGE


class RepositoryError(LagunaError):
    """There is no repository, or it cannot be read."""

    exit_code = ExitCode.REPOSITORY


class EngineUnavailable(LagunaError):
    """The engine, its environment or its model cannot serve a request."""

    exit_code = ExitCode.ENGINE


class OverBudget(LagunaError):
    """A prompt does not fit the context, or a queue is full."""

    exit_code = ExitCode.BUDGET


class EditsRefused(LagunaError):
    """Edits were refused; nothing was written."""

    exit_code = ExitCode.EDITS_REFUSED


class CheckFailed(LagunaError):
    """A check (``doctor``, ``--check``) failed."""

    exit_code = ExitCode.CHECK_FAILED


class ParameterRefused(LagunaError):
    """A sampling parameter that the engine would refuse, or serve wrongly."""

    exit_code = ExitCode.PARAMETER


def error_for_code(code: int, what: str, advice: str = "") -> LagunaError:
    """Rebuild the error that another process reported by its exit code."""
    for kind in LagunaError.__subclasses__():
        if kind.exit_code == code:
            return kind(what, advice)
    return LagunaError(what, advice)
