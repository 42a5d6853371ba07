"""Golden cases of the edit engine: an input tree, a model's answer, the tree that must come out or the refusal.

A case is one text file. Lines that start with ``%% `` open a section::

    %% file PATH [OPTION ...]     a file of the input tree
    %% link PATH TARGET           a symbolic link;  %% pipe PATH  a named pipe;  %% repo PATH  a nested repository
    %% buffer PATH                unsaved text of a file
    %% stale PATH                 the model was shown another text;  %% unseen PATH  it was not shown the file
    %% allow-ignored              ignored files may be edited
    %% answer [OPTION ...]        what the model wrote
    %% expect PATH [OPTION ...]   a file that differs afterwards;  %% gone PATH  one that is not there any more
    %% refused CODE [PATH]        a refusal;  %% says TEXT  words of the message for the model
    %% note TEXT                  words of a note

Options: ``crlf``, ``bom``, ``nonl`` (no newline at the end), ``enc=NAME``, ``mode=755``, ``raw`` (Python escapes).
Everything before the first section says what the case shows.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import stat
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

CASES = Path(__file__).parents[1] / "cases" / "edits"


@dataclass
class Case:
    """One golden case, read."""

    name: str
    shows: str
    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    pipes: list[str] = field(default_factory=list)
    repos: list[str] = field(default_factory=list)
    buffers: dict[str, str] = field(default_factory=dict)
    stale: set[str] = field(default_factory=set)
    unseen: set[str] = field(default_factory=set)
    allow_ignored: bool = False
    answer: str = ""
    expect: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    refused: list[tuple[str, str | None]] = field(default_factory=list)
    says: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def build(self, root: Path) -> None:
        """Write the input tree below ``root``, a new git repository."""
        root.mkdir(parents=True)
        git(root, "init", "-q")
        for path, (data, mode) in self.files.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            target.chmod(mode)
        for path, to in self.links.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).symlink_to(to)
        for path in self.pipes:
            os.mkfifo(root / path)
        for path in self.repos:
            (root / path / ".git").mkdir(parents=True)

    def seen(self) -> dict[str, str]:
        """What the model was shown, by hash."""
        seen = {path: _sha(data) for path, (data, _) in self.files.items()}
        seen |= {path: _sha(text.encode()) for path, text in self.buffers.items()}
        seen |= {path: _sha(b"another text") for path in self.stale}
        return {path: digest for path, digest in seen.items() if path not in self.unseen}


def git(root: Path, *args: str, data: bytes | None = None) -> bytes:
    """Run git in a folder, with no configuration but its own."""
    environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(["git", *args], cwd=root, input=data, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def snapshot(root: Path) -> dict[str, tuple[object, ...]]:
    """Everything below a folder except ``.git`` at its top: path -> kind, mode and content."""
    found: dict[str, tuple[object, ...]] = {}
    for folder, folders, files in os.walk(root):
        if Path(folder) == root:
            folders.remove(".git")
        for name in [*files, *(name for name in folders if (Path(folder) / name).is_symlink())]:
            path = Path(folder) / name
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                content: object = path.readlink().as_posix()
            else:
                content = path.read_bytes() if stat.S_ISREG(status.st_mode) else None
            found[path.relative_to(root).as_posix()] = (
                stat.S_IFMT(status.st_mode),
                stat.S_IMODE(status.st_mode),
                content,
            )
    return found


def load(path: Path) -> Case:
    """Read one case file."""
    shows, *sections = ("\n" + path.read_text(encoding="utf-8")).split("\n%% ")
    case = Case(path.stem, shows.strip())
    for section in sections:
        header, newline, body = section.partition("\n")
        _add(case, header.split(), body + ("\n" if newline and body and not body.endswith("\n") else ""), header)
    assert case.answer or case.name.startswith("answer-"), "a case needs an answer"
    assert case.refused or case.expect or case.gone or case.notes, "a case needs an outcome"
    return case


def _add(case: Case, words: list[str], body: str, header: str) -> None:
    kind, *rest = words
    match kind, rest:
        case "file" | "expect", [path, *options]:
            files = case.files if kind == "file" else case.expect
            files[path] = (_bytes(body, options), _mode(options))
        case "answer", options:
            case.answer = _bytes(body, options).decode("utf-8", "surrogatepass")
        case "link", [path, to]:
            case.links[path] = to
        case "pipe", [path]:
            case.pipes.append(path)
        case "repo", [path]:
            case.repos.append(path)
        case "buffer", [path, *options]:
            case.buffers[path] = _bytes(body, options).decode()
        case "stale" | "unseen" | "gone", [path]:
            getattr(case, kind).add(path)
        case "allow-ignored", []:
            case.allow_ignored = True
        case "refused", _:
            code, _, path = header.removeprefix("refused ").partition(": ")
            case.refused.append((code, path or None))
        case "says" | "note", _:
            (case.says if kind == "says" else case.notes).append(header.partition(" ")[2])
        case _:
            raise AssertionError(f"{case.name}: unknown section {header!r}")


def _bytes(body: str, options: list[str]) -> bytes:
    encoding = next((option[4:] for option in options if option.startswith("enc=")), "utf-8")
    if "raw" in options:
        return codecs.escape_decode(body.removesuffix("\n").encode())[0]  # type: ignore[attr-defined]
    if "nonl" in options:
        body = body.removesuffix("\n")
    if "crlf" in options:
        body = body.replace("\n", "\r\n")
    mark = {"utf-8": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
    return (mark[encoding] if "bom" in options else b"") + body.encode(encoding)


def _mode(options: list[str]) -> int:
    return next((int(option[5:], 8) for option in options if option.startswith("mode=")), 0o644)


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
