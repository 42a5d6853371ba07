"""The one way to run git.

A repository's own configuration can name commands: fsmonitor, hooks, filters, textconv, external diffs,
pagers, signature checkers, ssh and transport helpers, aliases. Files of a repository are untrusted, so
nothing of that may ever run. Four walls:

1. only reading subcommands are let through, and none of their options that run a helper;
2. settings that name a command are overridden on the command line, which beats every file;
3. the environment is rebuilt: no `GIT_*` variable but those that say where the user's own configuration
   lies, no transport;
4. subcommands that read the worktree's content get every configured filter emptied by name, and never enter
   submodules (git drops command-line settings when it does).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from .errors import ContextError, GitFailed, GitUnavailable, NotARepository, UnsafeRepository

KEPT_VARIABLES = frozenset(
    {
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_SYSTEM",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CEILING_DIRECTORIES",
        "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    }
)
"""`GIT_*` variables of the user that say which configuration is theirs; all others are dropped."""

DIFFING = frozenset({"diff", "diff-files", "diff-index", "diff-tree", "log", "show"})
READS_WORKTREE = frozenset({"blame", "diff", "diff-files", "diff-index", "ls-files", "status"})
ENTERS_SUBMODULES = frozenset({"diff", "diff-files", "diff-index", "diff-tree", "log", "show", "status"})
ALLOWED = (
    DIFFING
    | READS_WORKTREE
    | {
        "cat-file",
        "check-ignore",
        "config",
        "for-each-ref",
        "ls-tree",
        "merge-base",
        "name-rev",
        "rev-list",
        "rev-parse",
        "symbolic-ref",
        "version",
    }
)
REFUSED_OPTIONS = (
    "--ext-diff",
    "--textconv",
    "--filters",
    "--output",
    "--show-signature",
    "--recurse-submodules",
    "--submodule",
    "--ignore-submodules",
)
CONFIG_READS = frozenset({"--get", "--get-all", "--get-regexp", "--list", "-l"})

_OVERRIDES = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "core.editor": "false",
    "core.askPass": "false",
    "core.sshCommand": "false",
    "core.gitProxy": "false",
    "core.alternateRefsCommand": "false",
    "credential.helper": "",
    "diff.external": "",
    "diff.ignoreSubmodules": "all",
    "diff.submodule": "short",
    "gpg.program": "false",
    "gpg.ssh.program": "false",
    "gpg.x509.program": "false",
    "gpg.ssh.defaultKeyCommand": "",
    "log.showSignature": "false",
    "status.submoduleSummary": "false",
    "submodule.recurse": "false",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",
    "maintenance.auto": "false",
    "gc.auto": "0",
    "color.ui": "false",
}
_FILTER_KEY = re.compile(r"^filter\.(?P<name>.*)\.(?:clean|smudge|process|required)$", re.DOTALL)


def run_git(
    root: Path,
    *args: str,
    timeout: float = 60,
    input: bytes | None = None,
    accept: Iterable[int] = (0,),
) -> bytes:
    """Run one reading git command in `root` and return its standard output.

    `timeout` is in seconds. `accept` holds the exit statuses that are answers rather than failures.

    Raises `NotARepository`, `UnsafeRepository` (git's ownership check is reported, never worked round),
    `GitUnavailable` (absent, or too slow: its whole process group is killed), `GitFailed` otherwise, and
    `ValueError` for a command that is not on the list.
    """
    command, rest = _checked(args)
    overrides = dict(_OVERRIDES)
    if command in READS_WORKTREE and not _lists_names_only(command, rest):
        overrides |= _emptied_filters(root, timeout)
    output, errors, code = _execute(root, _argv(command, rest, overrides), timeout, input)
    if code not in accept:
        raise _failure(root, command, errors, code)
    return output


def find_root(path: Path) -> Path | None:
    """The top folder of the git worktree that holds `path`, or None outside git.

    Raises `UnsafeRepository` if git refuses the owner, or if the configuration claims a worktree elsewhere.
    """
    folder = path if path.is_dir() else path.parent
    try:
        answer = run_git(folder, "rev-parse", "--show-toplevel")
    except NotARepository:
        return None
    top = Path(os.fsdecode(answer.removesuffix(b"\n")))
    if not os.path.lexists(top / ".git"):
        raise UnsafeRepository(
            f"The repository at {folder} claims {top} as its worktree, which has no .git of its own.",
            "Remove core.worktree from its configuration, or name another folder.",
        )
    return top


def _checked(args: tuple[str, ...]) -> tuple[str, list[str]]:
    if not args or args[0] not in ALLOWED:
        raise ValueError(f"git {args[0] if args else ''} is not among the reading commands")
    for argument in args[1:]:
        if argument == "--":
            break
        if argument.split("=", 1)[0] in REFUSED_OPTIONS or argument.startswith("-O"):
            raise ValueError(f"git option {argument} is refused")
    if args[0] == "config" and not CONFIG_READS & set(args):
        raise ValueError("git config is refused but for reading")
    return args[0], list(args[1:])


def _lists_names_only(command: str, rest: list[str]) -> bool:
    return command == "ls-files" and not {"-m", "--modified"} & set(rest)


def _argv(command: str, rest: list[str], overrides: Mapping[str, str]) -> list[str]:
    argv = [git_program(), "--no-pager"]
    if command != "check-ignore":
        argv.append("--literal-pathspecs")
    for key, value in overrides.items():
        argv += ["-c", f"{key}={value}"]
    argv.append(command)
    if command in DIFFING:
        argv += ["--no-ext-diff", "--no-textconv"]
    if command == "blame":
        argv.append("--no-textconv")
    if command in ENTERS_SUBMODULES:
        argv.append("--ignore-submodules=all")
    return argv + rest


def _emptied_filters(root: Path, timeout: float) -> dict[str, str]:
    """Settings that empty every content filter the configuration names: git skips an empty command."""
    argv = _argv("config", ["-z", "--name-only", "--get-regexp", r"^filter\."], _OVERRIDES)
    output, _, _ = _execute(root, argv, timeout, None)
    emptied: dict[str, str] = {}
    for key in output.decode("utf-8", "surrogateescape").split("\0"):
        if found := _FILTER_KEY.match(key):
            name = found["name"]
            emptied |= {f"filter.{name}.{part}": "" for part in ("clean", "smudge", "process")}
            emptied[f"filter.{name}.required"] = "false"
    return emptied


@lru_cache(maxsize=1)
def git_program() -> str:
    """Absolute path of git, looked up in the absolute folders of PATH alone, so that no repository can
    supply it."""
    for folder in _absolute_path().split(os.pathsep):
        candidate = Path(folder) / "git"
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    raise GitUnavailable("git is not installed, or not on PATH.", "Install git 2.38 or later.")


def _absolute_path() -> str:
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if Path(folder).is_absolute())


def safe_environment() -> dict[str, str]:
    """The environment git runs in: English messages, no prompts, no transports, no locks, no inherited
    `GIT_*`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in KEPT_VARIABLES}
    return kept | {
        "PATH": _absolute_path(),
        "LC_ALL": "C",
        "PAGER": "cat",
        "SSH_ASKPASS": "false",
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }


def _execute(root: Path, argv: list[str], timeout: float, given: bytes | None) -> tuple[bytes, str, int]:
    try:
        process = subprocess.Popen(
            argv,
            cwd=root,
            env=safe_environment(),
            stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        raise ContextError(f"{root} cannot be opened: {error.strerror}.", "Name an existing folder.") from error
    try:
        output, errors = process.communicate(given, timeout=timeout)
    except BaseException as error:
        _kill_group(process)
        if isinstance(error, subprocess.TimeoutExpired):
            raise GitUnavailable(
                f"git gave no answer about {root} in {timeout:g} s.",
                "Try again; a network file system or a very large repository may need longer.",
            ) from None
        raise
    return output, errors.decode("utf-8", "replace"), process.returncode


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.kill()
    process.communicate()


def _failure(root: Path, command: str, errors: str, code: int) -> ContextError:
    if "dubious ownership" in errors or "unsafe repository" in errors:
        return UnsafeRepository(
            f"git refuses the repository at {root}: it belongs to another user.",
            f"If you trust it: git config --global --add safe.directory {root}",
        )
    if "cannot use bare repository" in errors:
        return UnsafeRepository(
            f"{root} is inside a bare repository that git refuses to use unasked.",
            "Name a worktree instead.",
        )
    if "not a git repository" in errors:
        return NotARepository(f"{root} is not in a git repository.", "Name a repository, or a folder with --repo.")
    told = errors.strip().splitlines()
    detail = told[-1] if told else f"exit status {code}"
    return GitFailed(
        f"git {command} failed in {root}: {detail}",
        "Check the repository with git status.",
        code=code,
    )
