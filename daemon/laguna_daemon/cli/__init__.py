"""The command line: one module per command, errors and exit codes in one place."""

from __future__ import annotations

import sys

_INTERRUPTED = 130


def main() -> None:
    """Run ``laguna-daemon``; ends the process with the exit codes of docs/exit-codes.md."""
    try:
        sys.exit(_run(sys.argv[1:]))
    except KeyboardInterrupt:  # also while the modules of a command are still being loaded
        sys.exit(_INTERRUPTED)


def _run(argv: list[str]) -> int:
    if argv[:1] == ["lsp"]:
        # Editors start this bridge at every launch and wait for it: it skips the whole command line.
        from laguna_daemon.cli.lsp import run

        return run(argv[1:])
    from laguna_daemon.cli.app import run_app

    return run_app(argv)
