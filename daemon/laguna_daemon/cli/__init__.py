"""The command line: one module per command, errors and exit codes in one place."""

from __future__ import annotations

import sys


def main() -> None:
    """Run ``laguna-daemon``; ends the process with the exit codes of docs/exit-codes.md."""
    if sys.argv[1:2] == ["lsp"]:
        # Editors start this bridge at every launch and wait for it: it skips the whole command line.
        from laguna_daemon.cli.lsp import run

        sys.exit(run(sys.argv[2:]))
    from laguna_daemon.cli.app import run_app

    sys.exit(run_app(sys.argv[1:]))
