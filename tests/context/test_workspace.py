"""The façade: opening, accounts, identity, locks."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from laguna_context.errors import ContextError
from laguna_context.listing import Selection
from laguna_context.template import load_template
from laguna_context.tokens import Tokenizer
from laguna_context.workspace import Budget
from support.repositories import repository, write

ROOMY = Budget(context=20_000, output=500, task=500, overlay=2000)
FILES = {"a.py": "a = 1\n", "b.py": "b = 1\n", "logo.png": b"\x89PNG\0\0\0\0", ".gitignore": "*.log\n"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", FILES, commit=True)


def test_the_manifest_accounts_for_every_listed_file(root: Path, open_workspace: object) -> None:
    (root / "link").symlink_to("/etc/hostname")
    space = open_workspace(root, ROOMY)  # type: ignore[operator]
    manifest = space.manifest()
    assert {file.path: file.tier for file in manifest.files} == {
        ".gitignore": "full",
        "a.py": "full",
        "b.py": "full",
        "link": "path",
        "logo.png": "path",
    }
    prompt = space.prompt("?")
    assert manifest.prefix_tokens == prompt.prefix_tokens
    assert sum(file.tokens for file in manifest.files) + manifest.listing_tokens == manifest.snapshot_tokens
    assert (manifest.snapshot, manifest.identity) == (prompt.snapshot, prompt.identity)
    assert manifest.skipped == {"binary": 1, "symlink": 1}
    assert manifest.as_dict()["budget"]["context"] == 20_000


def test_the_manifest_names_the_version_the_model_saw(root: Path, open_workspace: object) -> None:
    import hashlib

    space = open_workspace(root, ROOMY)  # type: ignore[operator]
    write(root, {"a.py": "a = 2\n"})
    space.changed(["a.py"])
    versions = {file.path: file.version for file in space.manifest().files}
    assert versions["a.py"] == hashlib.sha256(b"a = 2\n").hexdigest()
    assert versions["b.py"] == hashlib.sha256(b"b = 1\n").hexdigest()


def test_why_names_the_rule_or_the_tier(root: Path, open_workspace: object) -> None:
    write(root, {"x.log": "log\n"})
    space = open_workspace(root, ROOMY, selection=Selection(exclude=("b.py",)))  # type: ignore[operator]
    out = space.why("x.log")
    assert (out.included, out.rule, out.line) == (False, "*.log", 1)
    assert space.why("a.py").tier == "full"
    assert space.why("a.py").tokens > 0
    assert not space.why("b.py").included
    assert space.why("logo.png").reason.startswith("binary")


def test_why_reads_a_path_however_it_is_spelled(root: Path, open_workspace: object) -> None:
    write(root, {"src/deep.py": "deep = 1\n"})
    space = open_workspace(root, ROOMY)  # type: ignore[operator]
    for spelled in ("src/deep.py", "./src/deep.py", "src//deep.py", str(root / "src/deep.py")):
        assert (space.why(spelled).path, space.why(spelled).tier) == ("src/deep.py", "full")
    assert space.why("src/").reason == "a folder: 1 of its files are listed; ask about one of them"


def test_identity_depends_on_all_that_the_prefix_depends_on(
    root: Path, open_workspace: object, laguna_model: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    def identity(where: Path = root, **options: object) -> str:
        space = open_workspace(where, ROOMY, **options)  # type: ignore[operator]
        found: str = space.prompt("?").identity
        space.close()
        return found

    copy = repository(tmp_path / "copy", FILES, commit=True)
    other = load_template(laguna_model, tokenizer, "Another system text.")
    found = [identity(), identity(copy), identity(model="revision 2"), identity(template=other)]
    assert len(set(found)) == 4
    assert identity() == found[0]
    write(root, {"c.py": "c = 1\n"})
    assert identity() == found[0], "the snapshot is kept; the change is behind it"


def test_a_root_reached_through_a_link_is_the_same_root(root: Path, open_workspace: object, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    one, two = (open_workspace(path, ROOMY) for path in (root, tmp_path / "link"))  # type: ignore[operator]
    assert one.prompt("?").identity == two.prompt("?").identity


def test_a_rule_file_that_changes_is_followed(root: Path, open_workspace: object, tokenizer: Tokenizer) -> None:
    space = open_workspace(root, ROOMY)  # type: ignore[operator]
    write(root, {".gitignore": "*.log\nb.py\n", "new.log": "l\n"})
    git_rm(root, "b.py")
    space.changed([".gitignore", "new.log"])
    text = tokenizer.decode(space.prompt("?").ids).decode()
    assert "b = 1" not in text
    assert "a = 1" in text
    assert "new.log" not in text


def test_a_file_that_a_rule_now_keeps_out_leaves_the_prefix(
    root: Path, open_workspace: object, tokenizer: Tokenizer
) -> None:
    space = open_workspace(root, ROOMY)  # type: ignore[operator]
    write(root, {"private.txt": "for my eyes only\n"})
    space.changed(["private.txt"])
    assert b"my eyes" in tokenizer.decode(space.prompt("?").ids)
    space.compact(force=True)
    assert b"my eyes" in tokenizer.decode(space.prompt("?").ids)
    write(root, {".lagunaignore": "private.txt\na.py\n"})
    space.changed([".lagunaignore"])
    prompt = space.prompt("?")
    text = tokenizer.decode(prompt.ids)
    assert b"my eyes" not in text
    assert b"a = 1" not in text
    assert b"b = 1" in text
    assert len(prompt.notes) == 1
    assert space.prompt("?").notes == ()


def git_rm(root: Path, path: str) -> None:
    from support.repositories import git

    git(root, "rm", "-q", "--cached", path)


def test_outside_git_a_folder_is_a_workspace_too(tmp_path: Path, open_workspace: object, tokenizer: Tokenizer) -> None:
    write(tmp_path / "plain", {"a.py": "a = 1\n"})
    space = open_workspace(tmp_path / "plain", ROOMY)  # type: ignore[operator]
    assert b"a = 1" in tokenizer.decode(space.prompt("?").ids)


def test_a_root_that_is_not_there(tmp_path: Path, open_workspace: object) -> None:
    with pytest.raises(ContextError, match="not a folder"):
        open_workspace(tmp_path / "missing")  # type: ignore[operator]


def test_progress_is_told(root: Path, open_workspace: object) -> None:
    told: list[tuple[str, int, int]] = []
    open_workspace(root, ROOMY, progress=lambda *step: told.append(step))  # type: ignore[operator]
    assert told and told[-1][1] == told[-1][2]


def test_threads_may_ask_and_change_at_once(root: Path, open_workspace: object) -> None:
    space = open_workspace(root, replace(ROOMY, overlay=1500))  # type: ignore[operator]
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for number in range(15):
                write(root, {f"{name}.py": f"x = {number}\n"})
                space.changed([f"{name}.py"])
                space.prompt("?")
        except BaseException as error:  # reported by the main thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "uvw"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_files_that_no_prompt_needs_are_accounted_for(tmp_path: Path, open_workspace: object) -> None:
    files = {f"m{i}.py": f"value = {i}\n" * 60 for i in range(600)}
    root = repository(tmp_path / "repo", files, commit=True)
    (root / "picture.bin").write_bytes(b"\0\1\2" * 90_000)
    budget = Budget(context=4000, output=500, task=500, overlay=300)
    space = open_workspace(root, budget)  # type: ignore[operator]
    opened = space.files_opened
    assert opened < len(files), "most files are not read"
    manifest = space.manifest()
    assert space.files_opened == opened
    assert {file.path for file in manifest.files} == {*files, "picture.bin"}
    assert manifest.skipped == {"binary": 1}
    assert sum(manifest.tiers.values()) == len(manifest.files)


def test_a_new_file_that_is_generated_or_huge_is_named_not_shown(
    root: Path, open_workspace: object, tokenizer: Tokenizer
) -> None:
    space = open_workspace(root)  # type: ignore[operator]
    space.prompt("?")
    write(root, {"uv.lock": "package = 1\n" * 3000, "logo.svg": "<svg/>\n" * 90, "new.py": "n = 1\n" * 9})
    space.changed(None)
    text = tokenizer.decode(space.prompt("?").ids).decode()
    assert "n = 1" in text and "<svg/>" not in text and "package = 1" not in text
    assert "uv.lock" in text and "logo.svg" in text, "the listing names them"
    assert space.why("uv.lock").tier == "path"
    assert space.compactions == 0
