"""``laguna-daemon lsp``: the bridge between an editor's pipes and the daemon. Imports little: editors wait for it."""

from __future__ import annotations

import sys


def run(argv: list[str]) -> int:
    """Serve one editor on standard input and output, starting the daemon if needed."""
    if argv and argv != ["--stdio"]:
        print("usage: laguna-daemon lsp [--stdio]", file=sys.stderr)
        return 0 if argv in (["--help"], ["-h"]) else 2
    from laguna_daemon.lsp.bridge import run_bridge
    from laguna_daemon.paths import lsp_socket

    try:
        path = lsp_socket()
    except Exception as error:
        print(f"laguna-daemon: {error}", file=sys.stderr)
        return int(getattr(error, "exit_code", 1))
    return run_bridge(path, _start)


def command(stdio: bool = False) -> None:
    """Only for ``--help``: ``main`` answers this command before the command line is loaded."""
    raise SystemExit(run(["--stdio"] if stdio else []))


def _start() -> None:
    from laguna_daemon.lifecycle import ensure_running

    ensure_running()
