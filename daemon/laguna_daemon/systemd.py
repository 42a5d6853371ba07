"""A systemd unit of the user, for those who want the daemon to run from log-in on and to be started again.

Nothing needs it: any command starts the daemon by itself. Settings come from config.toml; folders that were moved by
LAGUNA_*_DIR variables are written into the unit, since systemd starts it without them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from laguna_daemon.errors import LagunaError
from laguna_daemon.lifecycle import ALREADY_RUNNING, STOP_TIMEOUT

NAME = "laguna-daemon.service"
_FOLDERS = ("LAGUNA_RUNTIME_DIR", "LAGUNA_DATA_DIR", "LAGUNA_CACHE_DIR", "LAGUNA_STATE_DIR", "XDG_CONFIG_HOME")


def unit_file() -> Path:
    """Where systemd looks for the user's own units."""
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "systemd" / "user" / NAME


def unit_text(environment: Mapping[str, str]) -> str:
    """The unit, for this Python and the folders in ``environment``."""
    folders = [f"Environment={_quoted(f'{name}={environment[name]}')}" for name in _FOLDERS if environment.get(name)]
    lines = [
        "[Unit]",
        "Description=laguna-daemon, a private coding assistant",
        "Documentation=man:systemd.unit(5)",
        "",
        "[Service]",
        "Type=exec",
        f"ExecStart={_quoted(sys.executable)} -P -m laguna_daemon.process",
        *folders,
        "WorkingDirectory=/",
        "UMask=0077",
        "NoNewPrivileges=yes",
        # Another daemon of the same user is no failure: clients start one by themselves.
        f"SuccessExitStatus={ALREADY_RUNNING}",
        f"RestartPreventExitStatus={ALREADY_RUNNING}",
        "Restart=on-failure",
        "RestartSec=5",
        # The daemon ends its engine itself; whatever is left after that is killed.
        "KillMode=mixed",
        f"TimeoutStopSec={STOP_TIMEOUT + 10:.0f}",
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    return "\n".join(lines) + "\n"


def install() -> bool:
    """Write the unit and enable it; False if there is no systemd of the user to be told."""
    path = unit_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(unit_text(os.environ), encoding="utf-8")
    except OSError as error:
        raise LagunaError(f"{path} cannot be written: {error.strerror}", "Check the folder's permissions.") from error
    return _systemctl("daemon-reload") and _systemctl("enable", NAME)


def remove() -> bool:
    """Disable and remove the unit; False if there was none."""
    if not unit_file().exists():
        return False
    _systemctl("disable", "--now", NAME)
    unit_file().unlink(missing_ok=True)
    _systemctl("daemon-reload")
    return True


def _systemctl(*args: str) -> bool:
    if shutil.which("systemctl") is None:
        return False
    done = subprocess.run(["systemctl", "--user", *args], capture_output=True, check=False, timeout=30)
    return done.returncode == 0


def _quoted(text: str) -> str:
    """A word of a unit file: quoted, with specifiers and escapes taken literally."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'
