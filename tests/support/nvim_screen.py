"""A real Neovim with a user interface of the test's own: keys go in, a screen of characters comes out."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgpack

WIDTH, HEIGHT = 100, 30


class NvimError(Exception):
    """Neovim's answer to a request that failed."""


class Grid:
    """What the user sees: rows of cells, each a character and the number of its highlighting."""

    def __init__(self) -> None:
        self.cells: list[list[tuple[str, int]]] = []
        self.names: dict[int, set[str]] = {}  # highlight groups behind a number

    def draw(self, event: str, args: Sequence[Any]) -> None:
        """One `redraw` event of Neovim's line grid (`:help ui-linegrid`)."""
        if event == "grid_resize":
            _, width, height = args
            self.cells = [[(" ", 0)] * width for _ in range(height)]
        elif event == "grid_clear":
            self.cells = [[(" ", 0)] * len(row) for row in self.cells]
        elif event == "grid_line":
            self._line(*args[1:4])
        elif event == "grid_scroll":
            self._scroll(*args[1:6])
        elif event == "hl_attr_define":
            self.names[args[0]] = {info.get("hi_name", "") for info in args[3]}

    def _line(self, row: int, column: int, cells: Sequence[Sequence[Any]]) -> None:
        number = 0
        for text, *more in cells:
            number = more[0] if more else number
            for _ in range(more[1] if len(more) > 1 else 1):
                self.cells[row][column] = (text, number)
                column += 1

    def _scroll(self, top: int, bottom: int, left: int, right: int, rows: int) -> None:
        order = range(top, bottom) if rows > 0 else range(bottom - 1, top - 1, -1)
        for row in order:
            if top <= row + rows < bottom:
                self.cells[row][left:right] = self.cells[row + rows][left:right]

    def lines(self) -> list[str]:
        return ["".join(text for text, _ in row).rstrip() for row in self.cells]

    def marked(self, *groups: str) -> str:
        """The characters that stand in one of these highlight groups, row by row."""
        rows = []
        for row in self.cells:
            found = "".join(text for text, number in row if self.names.get(number, set()) & set(groups))
            if found:
                rows.append(found.rstrip())
        return "\n".join(rows)


class Nvim:
    """One running editor."""

    def __init__(self, binary: Path, arguments: Sequence[str | Path], env: Mapping[str, str], cwd: Path) -> None:
        self.process = subprocess.Popen(
            [binary, "--embed", *arguments], env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._grid = Grid()
        self._answers: dict[int, tuple[Any, Any]] = {}
        self._changed = threading.Condition()
        self._next = 0
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.call("nvim_ui_attach", WIDTH, HEIGHT, {"ext_linegrid": True, "ext_hlstate": True})

    def call(self, method: str, *args: Any, seconds: float = 30) -> Any:
        """Call a function of Neovim's API."""
        self._next += 1
        number = self._next
        assert self.process.stdin is not None
        self.process.stdin.write(msgpack.packb([0, number, method, args]))
        self.process.stdin.flush()
        with self._changed:
            done = self._changed.wait_for(lambda: number in self._answers or self._ended, seconds)
            assert done, f"{method} was not answered; the screen:\n{self.text()}"
            error, result = self._answers.pop(number, (["", "Neovim has ended"], None))
        if error is not None:
            raise NvimError(error[1])
        return result

    def keys(self, keys: str) -> None:
        """Type `keys`, in Vim's notation."""
        self.call("nvim_input", keys)

    def command(self, command: str) -> str:
        """Run an Ex command; its output."""
        return str(self.call("nvim_exec2", command, {"output": True})["output"])

    def lua(self, code: str, *args: Any) -> Any:
        """Run Lua; its value."""
        return self.call("nvim_exec_lua", code, args)

    def buffer(self) -> list[str]:
        """The lines of the current buffer."""
        return list(self.call("nvim_buf_get_lines", 0, 0, -1, False))

    def text(self) -> str:
        """The screen."""
        return "\n".join(self._grid.lines())

    def marked(self, *groups: str) -> str:
        """What on the screen stands in one of these highlight groups."""
        return self._grid.marked(*groups)

    def until(self, wanted: Callable[[], Any], what: str, seconds: float = 30) -> Any:
        """The first true value of `wanted()`."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = wanted()
            if found:
                return found
            time.sleep(0.03)
        raise AssertionError(f"not within {seconds} s: {what}; the screen:\n{self.text()}")

    def shows(self, text: str, seconds: float = 30) -> None:
        """Wait until the screen shows `text`."""
        self.until(lambda: text in self.text(), f"{text!r} on the screen", seconds)

    def kill(self) -> None:
        """End it as the kernel does: nothing in it can be done any more."""
        self.process.kill()
        self.process.wait(30)

    def _read(self) -> None:
        unpacker = msgpack.Unpacker(raw=False, strict_map_key=False, unicode_errors="replace", ext_hook=_handle)
        assert self.process.stdout is not None
        while data := self.process.stdout.read1(65536):
            unpacker.feed(data)
            for message in unpacker:
                with self._changed:
                    self._take(message)
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _take(self, message: Sequence[Any]) -> None:
        if message[0] == 1:
            _, number, error, result = message
            self._answers[number] = (error, result)
        elif message[0] == 2 and message[1] == "redraw":
            for event, *calls in message[2]:
                for args in calls:
                    self._grid.draw(event, args)


def _handle(code: int, data: bytes) -> int:
    """Buffers, windows and tab pages come as extension types that hold a number."""
    return int(msgpack.unpackb(data))
