"""Whatever a repository's configuration says, nothing of it runs."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from laguna_context.errors import ContextError, GitFailed, GitUnavailable, NotARepository, UnsafeRepository
from laguna_context.git import find_root, git_program, run_git, safe_environment
from laguna_context.listing import explain, list_files
from support.repositories import git, repository, write

READING = (
    ("status", "--porcelain", "-z"),
    ("diff",),
    ("diff", "HEAD"),
    ("diff", "--cached"),
    ("diff-files",),
    ("diff-index", "-p", "HEAD"),
    ("diff-tree", "-p", "HEAD"),
    ("log", "-p", "--format=%H %G? %s"),
    ("show", "HEAD"),
    ("blame", "a.txt"),
    ("ls-files", "-m", "-o", "-s", "-z", "--exclude-standard"),
    ("check-ignore", "-v", "a.txt"),
    ("rev-parse", "HEAD"),
    ("cat-file", "blob", "HEAD:a.txt"),
    ("for-each-ref",),
    ("rev-list", "--objects", "--all"),
)


@pytest.fixture
def trap(tmp_path: Path) -> tuple[Path, Path]:
    """A command that leaves a mark when it runs, and the mark."""
    mark = tmp_path / "ran"
    script = tmp_path / "evil"
    script.write_text(f'#!/bin/sh\necho "$0 $@" >> {mark}\ncat\nexit 0\n')
    script.chmod(0o755)
    return script, mark


def hostile(root: Path, script: Path) -> Path:
    """A repository that tries every way we know of to have `script` run."""
    repository(root, {"a.txt": "one\n", "b.bin": "\0x", ".gitignore": "*.log\n"}, commit=True)
    signed = git(root, "cat-file", "commit", "HEAD").replace(
        b"\n\n", b"\ngpgsig -----BEGIN PGP SIGNATURE-----\n x\n\n", 1
    )
    oid = git(root, "hash-object", "-t", "commit", "-w", "--stdin", input=signed).decode().strip()
    git(root, "update-ref", "refs/heads/main", oid)
    write(root, {".gitattributes": "* filter=evil diff=evil merge=evil\n"})
    settings = {
        "core.fsmonitor": script,
        "core.hooksPath": root / "hooks",
        "core.pager": script,
        "core.editor": script,
        "core.sshCommand": script,
        "core.askPass": script,
        "core.gitProxy": script,
        "core.alternateRefsCommand": script,
        "pager.diff": script,
        "pager.log": script,
        "diff.external": script,
        "diff.evil.command": script,
        "diff.evil.textconv": script,
        "filter.evil.clean": script,
        "filter.evil.smudge": script,
        "filter.evil.process": script,
        "filter.evil.required": "true",
        "gpg.program": script,
        "log.showSignature": "true",
        "alias.ls-files": f"!{script}",
        "alias.status": f"!{script}",
        "credential.helper": script,
        "protocol.ext.allow": "always",
        "uploadpack.packObjectsHook": script,
        "remote.origin.url": f"ext::{script}",
        "remote.origin.uploadpack": script,
        "remote.origin.promisor": "true",
        "extensions.partialClone": "origin",
        "core.repositoryFormatVersion": "1",
    }
    for key, value in settings.items():
        git(root, "config", key, str(value))
    for hook in ("post-index-change", "pre-commit", "reference-transaction", "post-checkout"):
        target = root / "hooks" / hook
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(script.read_bytes())
        target.chmod(0o755)
    write(root, {"a.txt": "two\n", "hooks.log": "x"})
    return root


def test_hostile_configuration_never_runs_anything(tmp_path: Path, trap: tuple[Path, Path]) -> None:
    script, mark = trap
    root = hostile(tmp_path / "r", script)
    mark.unlink(missing_ok=True)
    for command in READING:
        run_git(root, *command, accept=(0, 1))
    assert find_root(root) == root
    assert {entry.path for entry in list_files(root).entries} >= {"a.txt", "b.bin"}
    assert explain(root, "hooks.log").rule == "*.log"
    assert not mark.exists(), mark.read_text()


def test_the_trap_works(tmp_path: Path, trap: tuple[Path, Path]) -> None:
    script, mark = trap
    root = hostile(tmp_path / "r", script)
    subprocess.run(["git", "status"], cwd=root, capture_output=True, check=False, timeout=30)
    assert mark.exists()


def test_a_missing_object_is_not_fetched(tmp_path: Path, trap: tuple[Path, Path]) -> None:
    script, mark = trap
    root = hostile(tmp_path / "r", script)
    mark.unlink(missing_ok=True)
    with pytest.raises(GitFailed):
        run_git(root, "cat-file", "blob", "1" * 40)
    assert not mark.exists(), mark.read_text()


def test_a_submodule_with_hostile_configuration(tmp_path: Path, trap: tuple[Path, Path]) -> None:
    script, mark = trap
    inner = repository(tmp_path / "inner", {"lib.c": "x"}, commit=True)
    root = repository(tmp_path / "r", {"a.txt": "one\n"}, commit=True)
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "sub")
    git(root, "commit", "-qm", "sub")
    for key in ("core.fsmonitor", "filter.evil.clean"):
        git(root / "sub", "config", key, str(script))
    write(root, {"sub/lib.c": "y", "sub/.gitattributes": "* filter=evil\n"})
    git(root, "config", "submodule.sub.ignore", "none")
    git(root, "config", "diff.submodule", "diff")
    git(root, "config", "status.submoduleSummary", "true")
    for command in (("status",), ("diff",), ("diff", "HEAD"), ("diff-files", "-p"), ("diff-index", "-p", "HEAD")):
        run_git(root, *command)
    assert not mark.exists(), mark.read_text()


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("push",),
        ("commit", "-m", "x"),
        ("fetch",),
        ("-c", "alias.x=!sh", "x"),
        ("diff", "--ext-diff"),
        ("log", "--textconv"),
        ("cat-file", "--filters", "HEAD:a"),
        ("diff", "--output=/tmp/x"),
        ("log", "--show-signature"),
        ("config", "--add", "a.b", "c"),
        ("status", "--ignore-submodules=none"),
    ],
)
def test_commands_and_options_that_could_act_are_refused(tmp_path: Path, args: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"refused|not among"):
        run_git(tmp_path, *args)


def test_configuration_is_read_but_never_written(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a": "x"})
    before = (root / ".git/config").read_bytes()
    with pytest.raises(ValueError, match="refused"):
        run_git(root, "config", "user.name", "Someone")
    assert run_git(root, "config", "--get", "core.bare") == b"false\n"
    assert (root / ".git/config").read_bytes() == before


def test_the_index_is_never_written(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a": "x"}, commit=True)
    os.utime(root / "a", ns=(1, 1))
    before = (root / ".git/index").read_bytes()
    run_git(root, "status", "--porcelain")
    assert (root / ".git/index").read_bytes() == before


def test_inherited_variables_do_not_redirect_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "r", {"a": "x"}, commit=True)
    other = repository(tmp_path / "other", {"b": "x"}, commit=True)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    assert [entry.path for entry in list_files(root).entries] == ["a"]
    assert not {"GIT_DIR", "GIT_WORK_TREE", "GIT_EXTERNAL_DIFF", "GIT_CONFIG_COUNT"} & safe_environment().keys()


def test_git_is_never_taken_from_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path, {"git": "#!/bin/sh\necho mine\n"})
    (root / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    monkeypatch.chdir(root)
    git_program.cache_clear()
    assert run_git(root, "version").startswith(b"git version")


def test_the_top_of_a_worktree(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"src/a.py": "x"})
    assert find_root(root / "src/a.py") == root
    assert find_root(root / "src") == root
    outside = tmp_path / "plain"
    outside.mkdir()
    assert find_root(outside) is None


def test_a_worktree_claimed_elsewhere_is_refused(tmp_path: Path) -> None:
    root = repository(tmp_path / "a/r", {"f": "x"})
    git(root, "config", "core.worktree", str(tmp_path / "a"))
    with pytest.raises(UnsafeRepository, match="claims"):
        find_root(root)


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a folder away needs root")
def test_another_users_repository_is_reported_not_worked_round(tmp_path: Path) -> None:
    root = repository(tmp_path, {"f": "x"})
    for path in (root, root / ".git"):
        os.chown(path, 12345, 12345)
    for call in (list_files, find_root):
        with pytest.raises(UnsafeRepository) as caught:
            call(root)
        assert "safe.directory" in caught.value.advice


def test_a_bare_repository_inside_a_tree_is_not_trusted(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a": "x"})
    git(root, "init", "-q", "--bare", "docs")
    with pytest.raises(UnsafeRepository):
        run_git(root / "docs", "rev-parse", "HEAD")


def test_a_slow_git_is_ended(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a": "x"})
    with pytest.raises(GitUnavailable, match="no answer"):
        run_git(root, "check-ignore", "--stdin", timeout=0)
    os.mkfifo(root / ".git/info/exclude.pipe")
    git(root, "config", "include.path", str(root / ".git/info/exclude.pipe"))
    with pytest.raises(GitUnavailable, match="no answer"):
        run_git(root, "ls-files", timeout=0.3)


def test_failures_say_what_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NotARepository):
        run_git(tmp_path, "status")
    root = repository(tmp_path / "r", {"a": "x"})
    with pytest.raises(GitFailed) as caught:
        run_git(root, "rev-parse", "--verify", "nothing")
    assert caught.value.code == 128
    assert caught.value.what in str(caught.value)
    assert caught.value.advice
    with pytest.raises(ContextError, match="cannot be opened"):
        run_git(tmp_path / "none", "status")


def test_a_missing_git_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    git_program.cache_clear()
    with pytest.raises(GitUnavailable, match="not installed"):
        run_git(tmp_path, "version")
    git_program.cache_clear()


def test_a_broken_repository_is_not_walked_as_a_plain_folder(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a": "x"})
    (root / ".git/config").write_text("[broken")
    with pytest.raises(GitFailed):
        list_files(root)
    assert stat.S_ISDIR((root / ".git").stat().st_mode)
