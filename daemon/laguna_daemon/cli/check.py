"""The user's check command (``--check``), run where the user is: in this process' environment, never in the daemon's.

The command comes from the command line alone. Nothing that a model wrote is ever run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from laguna_daemon.schemas import CheckEvent

_KEPT = 256 * 1024  # bytes of output that are kept, from its end


def run_check(command: str, root: Path, *, echo: bool) -> CheckEvent:
    """Run ``command`` by the shell in ``root``, its output shown on stderr if ``echo``; output and exit code.

    Killed by a signal, it has the code a shell gives it (128 + number). KeyboardInterrupt passes through, after the
    command, which Ctrl-C reaches too, has ended.
    """
    with subprocess.Popen(
        command, shell=True, cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as child:
        assert child.stdout is not None
        output = bytearray()
        try:
            while chunk := os.read(child.stdout.fileno(), 65536):
                if echo:
                    sys.stderr.buffer.write(chunk)
                    sys.stderr.flush()
                output += chunk
                del output[: max(0, len(output) - _KEPT)]
            code = child.wait()
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)
            raise
    return CheckEvent(
        command=command, exit_code=code if code >= 0 else 128 - code, output=output.decode(errors="replace")
    )
