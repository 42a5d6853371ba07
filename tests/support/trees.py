"""Small trees for tests of the edit engine: written, read back, edited by a planned change set."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from laguna_daemon import edits
from laguna_daemon.edits.changes import FileState

FILE_CALLS = {"open", "os.rename", "os.remove", "os.link", "os.mkdir", "os.rmdir", "os.chmod"}


def write_tree(root: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a folder, which is made."""
    root.mkdir(parents=True, exist_ok=True)
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)


def read_tree(root: Path) -> dict[str, tuple[bytes, int]]:
    """Every file below a folder: bytes and mode."""
    return {
        path.relative_to(root).as_posix(): (path.read_bytes(), path.stat().st_mode & 0o7777)
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }


def folders(root: Path) -> set[str]:
    """Every folder below a folder."""
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_dir()}


def planned(root: Path, answer: str, **options: Any) -> edits.ChangeSet:
    """The change set of an answer that must be accepted."""
    parsed = edits.parse(answer)
    result = edits.plan(root, parsed.blocks, problems=parsed.problems, **options)
    assert isinstance(result, edits.ChangeSet), result.message()
    return result


def refused(root: Path, answer: str, **options: Any) -> edits.Refusals:
    """The refusals of an answer that must be refused."""
    parsed = edits.parse(answer)
    result = edits.plan(root, parsed.blocks, problems=parsed.problems, **options)
    assert isinstance(result, edits.Refusals), result
    return result


def replace(path: str, search: str, new: str) -> str:
    """A SEARCH/REPLACE block."""
    return f"<<<<<<< SEARCH {path}\n{search}\n=======\n{new}\n>>>>>>> REPLACE\n"


def mixed_edit(files: int) -> tuple[dict[str, bytes], str]:
    """A tree and an answer that changes, creates, deletes and renames ``files`` files in all."""
    tree: dict[str, bytes] = {}
    answer = ""
    for number in range(files):
        path, kind = f"d{number % 5}/f{number:02}.txt", number % 8
        if kind == 5:
            answer += f"<<<<<<< CREATE new{number % 3}/{path}\nfile {number}\n>>>>>>> END\n"
            continue
        tree[path] = b"head %d\r\nbody\r\ntail" % number
        if kind == 6:
            answer += f"<<<<<<< DELETE {path}\n>>>>>>> END\n"
        elif kind == 7:
            answer += f"<<<<<<< RENAME {path} -> moved/m{number}.txt\n>>>>>>> END\n"
        else:
            answer += replace(path, "body", f"changed\n{number}")
    return tree, answer


def killed_at(number: int, action: Callable[[Callable[[str], None]], object]) -> bool:
    """Run ``action(step)`` in a child process that SIGKILLs itself at its ``number``-th step; whether it got there."""

    def in_child() -> None:
        left = [number]

        def step(_: str) -> None:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        action(step)

    return _dies(in_child)


def killed_at_call(number: int, action: Callable[[], object]) -> bool:
    """The same at the ``number``-th call into the file system, whoever makes it."""

    def in_child() -> None:
        left = [number]

        def hook(event: str, _: object) -> None:
            if event in FILE_CALLS:
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        action()

    return _dies(in_child)


def _dies(action: Callable[[], object]) -> bool:
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        except BaseException as error:
            os.write(2, f"child: {error!r}\n".encode())
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def state(data: bytes, mode: int = 0o644) -> FileState:
    """A file state."""
    return FileState(data, mode)
