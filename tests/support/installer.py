"""Runs an engine installation of a given lock file in a process of its own, so that tests can end it in any way.

``python installer.py LOCK [PYTHON]``: prints each step as ``stage<TAB>message``, then ``finished<TAB>new|already``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from laguna_daemon.engine.install import Step, install
from laguna_daemon.engine.setup.lockfile import parse_lock
from laguna_daemon.errors import LagunaError


def show(step: Step) -> None:
    print(f"{step.stage}\t{step.message}", flush=True)


def main() -> int:
    lock = parse_lock("cpu", Path(sys.argv[1]).read_text(encoding="utf-8"))
    python = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    try:
        result = install("cpu", progress=show, lock=lock, packaged=None, python=python)
    except LagunaError as error:
        print(f"error\t{int(error.exit_code)}\t{error.what}", flush=True)
        return int(error.exit_code)
    print(f"finished\t{'already' if result.already else 'new'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
