"""Files that other programs run or obey without being asked: entering the folder, opening an editor, a push is enough.

A model's edit of such a file takes effect before anybody has run anything, so it needs a word of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from laguna_daemon.edits.safety import fold

_NAMES = (
    ".envrc",  # direnv
    ".mise.toml",
    "mise.toml",
    ".gitattributes",  # filters and drivers of git
    ".gitmodules",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    ".bazelrc",
    "sitecustomize.py",  # every Python started here
    "usercustomize.py",
    "*.pth",
    ".exrc",  # editors with local settings
    ".nvimrc",
    ".nvim.lua",
    ".vimrc",
    ".dir-locals.el",
    "*.code-workspace",
    ".gitlab-ci.yml",  # continuous integration
    ".travis.yml",
    ".drone.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "jenkinsfile",
    ".laguna.toml",  # ours
)
_FOLDERS = (
    (".github", "workflows"),
    (".github", "actions"),
    (".gitea", "workflows"),
    (".forgejo", "workflows"),
    (".circleci",),
    (".buildkite",),
    (".vscode",),
    (".idea",),
    (".zed",),
    (".husky",),
    (".githooks",),
    (".devcontainer",),
    (".cargo",),
)


def self_starting(paths: Iterable[str]) -> list[str]:
    """Those of ``paths`` (relative, posix) that take effect without being run, in their order."""
    return [path for path in paths if _is(tuple(fold(part) for part in path.split("/")))]


def _is(parts: tuple[str, ...]) -> bool:
    folders = parts[:-1]
    inside = any(folders[start : start + len(named)] == named for named in _FOLDERS for start in range(len(folders)))
    return inside or any(fnmatchcase(parts[-1], name) for name in _NAMES)
