"""``laguna-daemon lsp``: the bridge between an editor's pipes and the daemon. Imports little: editors wait for it."""

from __future__ import annotations

import sys
from pathlib import Path

from laguna_daemon import __version__


def run(argv: list[str]) -> int:
    """Serve one editor on standard input and output, starting the daemon if needed."""
    # Language clients add these two by themselves; the bridge watches its parent and needs neither.
    unknown = [word for word in argv if word != "--stdio" and not word.startswith("--clientProcessId=")]
    if unknown:
        print("usage: laguna-daemon lsp [--stdio]", file=sys.stderr)
        return 0 if unknown in (["--help"], ["-h"]) else 2
    from laguna_daemon.lsp.bridge import run_bridge
    from laguna_daemon.paths import lsp_socket

    try:
        path = lsp_socket()
        if _is_other_version(path.with_name("daemon.lock")):
            _start()
    except Exception as error:
        print(f"laguna-daemon: {error}", file=sys.stderr)
        return int(getattr(error, "exit_code", 1))
    return run_bridge(path, _start)


def _is_other_version(lock: Path) -> bool:
    """Whether the file was written by another version's daemon, dead or alive: never spoken to blindly."""
    try:
        return lock.read_text().partition(" ")[2] != __version__
    except OSError:
        return False


def command(stdio: bool = False) -> None:
    """Serve one editor on standard input and output, starting the daemon if needed."""
    # Only `--help` comes here: `main` answers this command before the command line is loaded.
    raise SystemExit(run(["--stdio"] if stdio else []))


def _start() -> None:
    from laguna_daemon.lifecycle import ensure_running

    ensure_running()
