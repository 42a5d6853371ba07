"""What takes effect without being run is known by its path, however that is written."""

import pytest

from laguna_daemon import edits


@pytest.mark.parametrize(
    "path",
    [
        ".envrc",
        "deep/er/.envrc",
        ".ENVRC",
        ".github/workflows/ci.yml",
        "sub/.GitHub/Workflows/ci.yml",
        ".vscode/tasks.json",
        ".husky/pre-commit",
        ".gitattributes",
        "src/site.pth",
        ".gitlab-ci.yml",
        ".laguna.toml",
        ".devcontainer/deep/devcontainer.json",
    ],
)
def test_known(path: str) -> None:
    assert edits.self_starting(["a.py", path]) == [path]


@pytest.mark.parametrize("path", ["a.py", ".github/README.md", "workflows/ci.yml", "envrc", "vscode/x", "docs/.github"])
def test_others(path: str) -> None:
    assert edits.self_starting([path]) == []
