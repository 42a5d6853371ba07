"""Running pip, the engine's Python and the like: output to a log, progress by looking, a clear end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from laguna_daemon.engine.setup.storage import disk_full, disk_guard

_TICK = 0.25  # seconds between two looks at a running command
_DISK_FULL = ("No space left on device", "Disk quota exceeded", "[Errno 27] File too large")
_GRACE = 5.0  # seconds that an interrupted command gets to end by itself

# Where pip installs to is ours to say; where it downloads from is the user's (PIP_INDEX_URL, PIP_FIND_LINKS,
# pip.conf ...).
_DROPPED = (
    "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_PYTHON", "PIP_DRY_RUN", "PIP_REPORT",
    "PIP_REQUIREMENT", "PIP_EDITABLE",
    "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__",
)  # fmt: skip
_FIXED = {
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
    "PIP_USER": "0",
    "PYTHONNOUSERSITE": "1",
    "PYTHONUNBUFFERED": "1",
    "HF_HUB_OFFLINE": "1",
    "LC_ALL": "C.UTF-8",
}


@dataclass
class CommandFailed(Exception):
    """A command ended with ``status``; ``output`` is all it said."""

    status: int
    output: str

    def reason(self) -> str:
        """The line of the output that says most: the last error, else the last line."""
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith(("ERROR:", "error:")) or "Error:" in line]
        chosen = errors[-1] if errors else lines[-1] if lines else f"exit status {self.status}"
        return chosen.removeprefix("ERROR:").strip()[:300]


class Commands:
    """Runs commands one after another, all with the same log, scratch folder and installation lock."""

    def __init__(self, log: Path, scratch: Path, held: int) -> None:
        self._log = log
        self._scratch = scratch
        self._held = held

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        tick: Callable[[str], None] = lambda output: None,
        env: Mapping[str, str] | None = None,
    ) -> str:
        """Run to the end and return the output (stdout and stderr together).

        ``tick`` is called a few times a second with the output so far. Raises CommandFailed, or InstallFailed
        when the disk is full. On any exception here, Ctrl-C included, the command is ended first.
        """
        with disk_guard(self._log):
            with self._log.open("ab") as log:
                start = log.tell()
                log.write(f"$ {' '.join(map(str, argv))}\n".encode())
            with self._log.open("ab") as log:
                process = subprocess.Popen(
                    [str(part) for part in argv],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**self._environment(), **(env or {})},
                    pass_fds=(self._held,),
                )
        try:
            while True:
                try:
                    status = process.wait(timeout=_TICK)
                    break
                except subprocess.TimeoutExpired:
                    tick(self._since(start))
        except BaseException:
            _end(process)
            raise
        output = self._since(start)
        if status == 0:
            return output
        if any(sign in output for sign in _DISK_FULL):
            raise disk_full(self._scratch)
        raise CommandFailed(status, output)

    def _since(self, start: int) -> str:
        with self._log.open("rb") as log:
            log.seek(start)
            return log.read().decode(errors="replace").partition("\n")[2]

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in _DROPPED}
        # Not /tmp: it is often small and in memory, and only this disk's space was checked.
        return {**kept, **_FIXED, "TMPDIR": str(self._scratch)}


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
