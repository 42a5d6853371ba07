"""Where the product keeps things: runtime, data, cache, state and settings folders, all private to the user.

| folder  | holds                                              | override             |
|---------|----------------------------------------------------|----------------------|
| runtime | sockets, lock and pid files                        | LAGUNA_RUNTIME_DIR   |
| data    | engines, models, conversations                     | LAGUNA_DATA_DIR      |
| cache   | token ids, snapshots                               | LAGUNA_CACHE_DIR     |
| state   | logs, the undo journal                             | LAGUNA_STATE_DIR     |
| config  | config.toml                                        | XDG_CONFIG_HOME      |
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import platformdirs

from laguna_daemon.errors import LagunaError

APP = "laguna-daemon"
# sockaddr_un.sun_path holds 108 bytes with the closing NUL; the longest name of ours is appended below.
_SOCKET_PATH_BYTES = 107
_LONGEST_SOCKET = "engine.sock"


def data_dir() -> Path:
    """Engines, models and conversations; created with mode 0700."""
    return _private(os.environ.get("LAGUNA_DATA_DIR"), platformdirs.user_data_path(APP))


def cache_dir() -> Path:
    """Token ids and snapshots, all of it reproducible; created with mode 0700."""
    return _private(os.environ.get("LAGUNA_CACHE_DIR"), platformdirs.user_cache_path(APP))


def state_dir() -> Path:
    """Logs and the undo journal; created with mode 0700."""
    return _private(os.environ.get("LAGUNA_STATE_DIR"), platformdirs.user_state_path(APP))


def config_file() -> Path:
    """The user's settings file; it need not exist."""
    base = os.environ.get("XDG_CONFIG_HOME")
    folder = Path(base) / APP if base else platformdirs.user_config_path(APP)
    return folder / "config.toml"


def runtime_dir() -> Path:
    """The folder of the sockets: owned by the user, mode 0700, short enough for a socket path.

    Raises LagunaError if the folder belongs to someone else, is open to others, or its path is too long.
    """
    named = os.environ.get("LAGUNA_RUNTIME_DIR")
    xdg = os.environ.get("XDG_RUNTIME_DIR")
    if named:
        folder = Path(named)
    elif xdg and Path(xdg).is_dir():
        folder = Path(xdg) / APP
    else:
        folder = Path(tempfile.gettempdir()) / f"{APP}-{os.getuid()}"
    folder = _private(str(folder), folder)
    if len(os.fsencode(folder / _LONGEST_SOCKET)) > _SOCKET_PATH_BYTES:
        raise LagunaError(
            f"The runtime folder's path is too long for a Unix socket: {folder}",
            f"Set LAGUNA_RUNTIME_DIR to a folder whose path is under "
            f"{_SOCKET_PATH_BYTES - len(_LONGEST_SOCKET) - 1} bytes.",
        )
    return folder


def api_socket() -> Path:
    """The daemon's HTTP socket."""
    return runtime_dir() / "api.sock"


def lsp_socket() -> Path:
    """The language server's socket."""
    return runtime_dir() / "lsp.sock"


def engine_socket() -> Path:
    """The engine's HTTP socket, used by the daemon alone."""
    return runtime_dir() / "engine.sock"


def log_dir() -> Path:
    """Log files of daemon and engine."""
    folder = state_dir() / "logs"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def journal_dir() -> Path:
    """Where the journal of edits lives: the state folder, never a repository."""
    return state_dir() / "edits"


def _private(override: str | None, default: Path) -> Path:
    folder = Path(override).expanduser().absolute() if override else default
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise LagunaError(
            f"Cannot use the folder {folder}: {error.strerror}",
            "Make it writable, or point the LAGUNA_*_DIR variable elsewhere (docs/settings.md).",
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise LagunaError(
            f"The folder {folder} is not a folder of yours; using it would let someone else read your code.",
            "Remove it, or point the LAGUNA_*_DIR variable elsewhere (docs/settings.md).",
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        folder.chmod(0o700)
    return folder
