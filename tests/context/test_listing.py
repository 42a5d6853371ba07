"""The listing is git's own answer, path for path, and every path can be explained."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from laguna_context.errors import ContextError, NotARepository
from laguna_context.listing import Selection, explain, list_files, refresh
from support.repositories import git, listed_by_git, repository, write


def paths(root: Path, selection: Selection | None = None) -> set[str]:
    listing = list_files(root, selection or Selection())
    found = [entry.path for entry in listing.entries]
    assert found == sorted(set(found))
    return set(found)


@pytest.fixture(autouse=True)
def own_configuration(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / "config"))
    return home


def test_info_exclude_with_negation(tmp_path: Path) -> None:
    root = repository(tmp_path, {"important.log": "x", "other.log": "x", "a.txt": "x"})
    (root / ".git/info/exclude").write_text("*.log\n!important.log\n")
    assert paths(root) == {"important.log", "a.txt"} == listed_by_git(root)


def test_a_root_rule_holds_for_a_part_of_the_repository(tmp_path: Path) -> None:
    repository(tmp_path, {".gitignore": "src/gone.py\n", "src/gone.py": "x", "src/here.py": "x"})
    assert paths(tmp_path / "src") == {"here.py"}
    assert paths(tmp_path, Selection(include=("src",))) == {"src/here.py"}


def test_leaving_the_ignore_file_out_does_not_switch_its_rules_off(tmp_path: Path) -> None:
    repository(tmp_path, {".gitignore": "*.log\n", "a.log": "x", "a.txt": "x"})
    assert paths(tmp_path, Selection(exclude=(".gitignore",))) == {"a.txt"}


def test_a_nested_file_takes_back_what_the_root_ignores(tmp_path: Path) -> None:
    files = {".gitignore": "**/vendor/\n", "a/.gitignore": "!vendor\n", "a/vendor/f.txt": "x", "b/vendor/f.txt": "x"}
    root = repository(tmp_path, files)
    assert "a/vendor/f.txt" in paths(root)
    assert paths(root) == listed_by_git(root) == {".gitignore", "a/.gitignore", "a/vendor/f.txt"}


def test_a_link_named_like_an_ignored_folder_is_listed_and_not_followed(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {".gitignore": "node_modules/\n"})
    write(tmp_path, {"elsewhere/inside.js": "x"})
    (root / "node_modules").symlink_to(tmp_path / "elsewhere")
    found = {entry.path: entry.kind for entry in list_files(root).entries}
    assert found == {".gitignore": "file", "node_modules": "symlink"}


@pytest.mark.parametrize("inside", [True, False])
def test_circular_links_end(tmp_path: Path, inside: bool) -> None:
    write(tmp_path, {"a/f": "x"})
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "a/b").symlink_to("../..")
    if inside:
        repository(tmp_path)
    assert paths(tmp_path) == {"loop", "a/b", "a/f"}


def test_global_excludes_and_tracked_but_ignored(tmp_path: Path, own_configuration: Path) -> None:
    root = repository(tmp_path, {"kept.swp": "x", "a.txt": "x", "b.bak": "x"})
    (own_configuration / "config").write_text(f"[core]\n\texcludesFile = {own_configuration}/mine\n")
    (own_configuration / "mine").write_text("*.swp\n*.bak\n")
    git(root, "add", "-f", "kept.swp")
    assert paths(root) == {"kept.swp", "a.txt"} == listed_by_git(root)
    tracked = {entry.path: entry.git_oid for entry in list_files(root).entries if entry.tracked}
    assert tracked == {"kept.swp": git(root, "hash-object", "kept.swp").decode().strip()}


@pytest.mark.parametrize("configured", [True, False])
def test_global_excludes_hold_outside_git_too(tmp_path: Path, own_configuration: Path, configured: bool) -> None:
    place = own_configuration / ("mine" if configured else "git/ignore")
    write(place.parent, {place.name: "*.swp\n"})
    if configured:
        (own_configuration / "config").write_text(f"[core]\n\texcludesFile = {place}\n")
    write(tmp_path, {"a.txt": "x", "b.swp": "x"})
    assert paths(tmp_path) == {"a.txt"}
    assert explain(tmp_path, "b.swp").source == str(place)


def test_submodules_are_listed_and_entered_only_if_selected(tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner", {"lib.c": "x", ".gitignore": "*.o\n"}, commit=True)
    root = repository(tmp_path / "outer", {"main.c": "x"})
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "deps/inner")
    write(root, {"deps/inner/lib.o": "x", "deps/inner/new.c": "x"})
    kinds = {entry.path: entry.kind for entry in list_files(root).entries}
    assert kinds == {".gitmodules": "file", "main.c": "file", "deps/inner": "submodule"}
    inside = {"deps/inner/lib.c", "deps/inner/.gitignore", "deps/inner/new.c"}
    assert paths(root, Selection(submodules=True)) == kinds.keys() | inside
    assert not explain(root, "deps/inner/lib.c").included
    assert explain(root, "deps/inner/lib.c", Selection(submodules=True)).included
    assert explain(root, "deps/inner/lib.o", Selection(submodules=True)).rule == "*.o"
    now = refresh(root, ["deps/inner/new.c"], {e.path: e for e in list_files(root).entries}, Selection(submodules=True))
    assert now["deps/inner/new.c"] is not None


def test_a_nested_repository_is_listed_and_not_entered(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a.txt": "x"})
    repository(root / "nested", {"f.txt": "x"}, commit=True)
    assert {entry.path: entry.kind for entry in list_files(root).entries} == {"a.txt": "file", "nested": "nested"}
    assert explain(root, "nested/f.txt").reason == "inside nested, a repository of its own"


def test_a_linked_worktree(tmp_path: Path) -> None:
    root = repository(tmp_path / "main", {"a.txt": "x", ".gitignore": "*.log\n"}, commit=True)
    git(root, "worktree", "add", "-q", str(tmp_path / "side"))
    write(tmp_path / "side", {"b.log": "x", "c.txt": "x"})
    assert paths(tmp_path / "side") == {"a.txt", ".gitignore", "c.txt"}


def test_odd_names(tmp_path: Path) -> None:
    names = {
        "with space",
        "tab\there",
        "new\nline",
        'quo"te',
        "ünï",
        "-dash",
        "*star",
        ":(top)magic",
        os.fsdecode(b"\xff\xfe"),
    }
    root = repository(tmp_path, dict.fromkeys(names, "x"))
    assert paths(root) == names
    known = {entry.path: entry for entry in list_files(root).entries}
    assert refresh(root, names, {}) == known
    assert all(explain(root, name).included for name in names)


def test_an_untracked_name_cannot_pose_as_an_index_entry(tmp_path: Path) -> None:
    name = f"H 160000 {'0' * 40} 0\tsrc"
    root = repository(tmp_path, {name: "x"})
    (entry,) = list_files(root).entries
    assert (entry.path, entry.tracked, entry.kind) == (name, False, "file")


def test_what_is_gone_or_replaced_on_disk_is_counted(tmp_path: Path) -> None:
    files = {"gone.txt": "x", "now_a_folder": "x", "linked/f.txt": "x", "kept.txt": "x"}
    root = repository(tmp_path / "r", files, commit=True)
    (root / "gone.txt").unlink()
    (root / "now_a_folder").unlink()
    write(root, {"now_a_folder/inside.txt": "x"})
    shutil.rmtree(root / "linked")
    write(tmp_path, {"outside/f.txt": "x"})
    (root / "linked").symlink_to(tmp_path / "outside")
    listing = list_files(root)
    assert {e.path: e.kind for e in listing.entries} == {
        "kept.txt": "file",
        "linked": "symlink",
        "now_a_folder/inside.txt": "file",
    }
    assert listing.left_out == {"missing": 2, "behind a symlink": 1}
    assert explain(root, "gone.txt").reason == "in git's index, but not on disk"
    assert explain(root, "linked/f.txt").reason == "behind the symbolic link linked, which is not followed"


def test_a_conflicted_path_is_listed_once_without_an_id(tmp_path: Path) -> None:
    root = repository(tmp_path, {"f": "base\n"}, commit=True)
    git(root, "checkout", "-q", "-b", "side")
    write(root, {"f": "side\n"})
    git(root, "commit", "-qam", "side")
    git(root, "checkout", "-q", "main")
    write(root, {"f": "main\n"})
    git(root, "commit", "-qam", "main")
    git(root, "merge", "side", check=False)
    (entry,) = list_files(root).entries
    assert (entry.path, entry.tracked, entry.git_oid) == ("f", True, None)


def test_stat_fields_come_from_disk(tmp_path: Path) -> None:
    root = repository(tmp_path, {"f": "12345"})
    (entry,) = list_files(root).entries
    seen = os.lstat(root / "f")
    assert (entry.size, entry.mtime_ns, entry.ctime_ns, entry.inode, entry.mode) == (
        5,
        seen.st_mtime_ns,
        seen.st_ctime_ns,
        seen.st_ino,
        seen.st_mode,
    )


@pytest.mark.parametrize("inside", [True, False])
def test_own_ignore_files(tmp_path: Path, inside: bool) -> None:
    files = {
        ".lagunaignore": "*.csv\n!keep.csv\nbig/\n",
        "a.csv": "x",
        "keep.csv": "x",
        "big/keep.csv": "x",
        "sub/.lagunaignore": "!b.csv\n",
        "sub/a.csv": "x",
        "sub/b.csv": "x",
    }
    write(tmp_path, files)
    if inside:
        repository(tmp_path, commit=True)
    expected = {".lagunaignore", "keep.csv", "sub/.lagunaignore", "sub/b.csv"}
    assert paths(tmp_path) == expected
    assert list_files(tmp_path).left_out[".lagunaignore"] == 3
    told = explain(tmp_path, "sub/a.csv")
    assert (told.included, told.rule, told.source, told.line) == (False, "*.csv", ".lagunaignore", 1)


def test_a_deep_own_ignore_file_that_git_ignores_still_counts(tmp_path: Path) -> None:
    root = repository(tmp_path, {".gitignore": ".lagunaignore\n", "a/.lagunaignore": "x\n", "a/x": "1", "a/y": "1"})
    assert paths(root) == {".gitignore", "a/y"}


def test_include_and_exclude(tmp_path: Path) -> None:
    files = dict.fromkeys(["src/a.py", "src/gen/b.py", "src/c.js", "docs/d.md", "e.py"], "x")
    root = repository(tmp_path, files)
    assert paths(root, Selection(include=("src/", "!src/gen"))) == {"src/a.py", "src/c.js"}
    assert paths(root, Selection(include=("*.py",), exclude=("/src/gen",))) == {"src/a.py", "e.py"}
    listing = list_files(root, Selection(include=("*.py",), exclude=("gen",)))
    assert listing.left_out == {"not included": 2, "excluded": 1}
    told = explain(root, "src/gen/b.py", Selection(exclude=("*.md", "gen")))
    assert (told.included, told.rule, told.source, told.line) == (False, "gen", "selection", 2)


def test_outside_git_pipes_are_counted_and_inner_repositories_not_entered(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "x", ".gitignore": "out/\n", "out/x": "x", "out/y": "y"})
    repository(tmp_path / "inner", {"f": "x"})
    os.mkfifo(tmp_path / "pipe")
    listing = list_files(tmp_path)
    assert {e.path: e.kind for e in listing.entries} == {".gitignore": "file", "a.txt": "file", "inner": "nested"}
    assert listing.left_out == {"ignored": 1, "not a plain file": 1}
    assert not listing.in_git


def test_a_tracked_path_that_became_a_pipe_keeps_its_mode(tmp_path: Path) -> None:
    root = repository(tmp_path, {"f": "x"}, commit=True)
    (root / "f").unlink()
    os.mkfifo(root / "f")
    (entry,) = list_files(root).entries
    assert stat.S_ISFIFO(entry.mode)


def test_git_folders_and_missing_folders_are_refused(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"f": "x"}, commit=True)
    for place in (root / ".git", tmp_path / "none"):
        with pytest.raises(ContextError):
            list_files(place)
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    with pytest.raises(ContextError):
        list_files(tmp_path / "bare.git")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("../x", "outside the folder"),
        ("/etc/passwd", "outside the folder"),
        (".git/config", "git's own files are never listed"),
        ("none.txt", "no such file"),
    ],
)
def test_paths_that_are_no_files_of_ours(tmp_path: Path, path: str, reason: str) -> None:
    root = repository(tmp_path, {"a.txt": "x"})
    assert (explain(root, path).included, explain(root, path).reason) == (False, reason)


def test_tracked_files_are_in_whatever_a_rule_says(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a.log": "x", ".gitignore": "\n*.log\n"})
    git(root, "add", "-f", "a.log")
    told = explain(root, str(root / "a.log"))
    assert (told.included, told.rule, told.source, told.line) == (True, "*.log", ".gitignore", 2)


NAMES = st.sampled_from(["a", "b", "ab", "a.b", "foo", "é", "[a]", "A", "a b", "x\\y"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PIECES = st.sampled_from(
    ["a", "b", "foo", "é", "*", "**", "?", "[ab]", "[!a]", "[^b-z]", "[[:alpha:]]", "\\a", "\\", "[", "]", ".", " ",
     "a b", "\\ ", "-", "[a-]", "[]a]", "[[:nope:]]", "A", "o", "\\[a\\]", "[z-a]", "[\\]a]", "[[:upper:]b]", "[/]"]
)  # fmt: skip
SEGMENTS = st.lists(PIECES, min_size=1, max_size=3).map("".join)
PATTERNS = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["", "", "", "!", "!", "\\!", "#", "\\#"]),
    st.sampled_from(["", "", "/", "**/", "/**/"]),
    st.lists(SEGMENTS, min_size=1, max_size=3).map("/".join),
    st.sampled_from(["", "", "", "/", "/**", "/*"]),
    st.sampled_from(["", "", "", " ", "  ", "\r", "\t"]),
)
RULES = st.lists(PATTERNS, max_size=4).map("\n".join)
TREES = st.tuples(
    st.lists(PATHS, max_size=14), st.dictionaries(st.sampled_from(["", "a/", "b/", "a/b/", "foo/"]), RULES, max_size=4)
)


def _grow(root: Path, tree: tuple[list[str], dict[str, str]]) -> None:
    files, rules = tree
    for path in files:
        target = root / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
    for folder, text in rules.items():
        if (root / folder).is_dir():
            (root / folder / ".gitignore").write_bytes(text.encode())


@example((["foo/x/b", "foo/b"], {"": "foo**/b"}))
@example((["a/b/foo", "a/foo"], {"": "a/**/foo\n!a/foo"}))
@example((["a/b", "a/a"], {"": "*\n!a\n", "a/": "!b"}))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TREES)
def test_generated_trees_agree_with_git_inside_and_outside(tree: tuple[list[str], dict[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _grow(root, tree)
        outside = paths(root)
        git(root, "init", "-q")
        expected = listed_by_git(root)
        assert paths(root) == expected
        assert outside == expected


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TREES, st.integers(0, 3))
def test_explanations_agree_with_the_listing_and_with_check_ignore(
    tree: tuple[list[str], dict[str, str]], step: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _grow(root, tree)
        files = sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())[step::4]
        outside = {path: explain(root, path) for path in files}
        git(root, "init", "-q")
        listed = listed_by_git(root)
        for path in files:
            told = explain(root, path)
            assert told.included == outside[path].included == (path in listed)
            answer = git(
                root, "check-ignore", "-v", "-n", "-z", "--stdin", input=os.fsencode(path) + b"\0", check=False
            )
            source, line, pattern, _ = (os.fsdecode(part) for part in answer.split(b"\0")[:4])
            assert (told.source, told.line, told.rule) == (source, int(line or 0), pattern)
            assert (outside[path].source, outside[path].line) == (source, int(line or 0))


def test_refresh_says_what_a_new_listing_would(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a.txt": "x", "b.txt": "x", ".gitignore": "*.log\n"}, commit=True)
    known = {entry.path: entry for entry in list_files(root).entries}
    write(root, {"a.txt": "longer", "c.txt": "new", "d.log": "new"})
    (root / "b.txt").unlink()
    asked = ["a.txt", "b.txt", "c.txt", "d.log", "never"]
    now = {entry.path: entry for entry in list_files(root).entries}
    assert refresh(root, asked, known) == {path: now.get(path) for path in asked}
    assert now["a.txt"] != known["a.txt"]


def test_refresh_of_very_many_paths(tmp_path: Path) -> None:
    names = [f"{'long' * 40}{i}.txt" for i in range(900)]
    root = repository(tmp_path, dict.fromkeys(names, "x"))
    assert refresh(root, names, {}) == {entry.path: entry for entry in list_files(root).entries}


def test_refresh_outside_git(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "*.log\n", "a.txt": "x", "d.log": "x"})
    found = refresh(tmp_path, ["a.txt", "d.log"], {})
    assert found["d.log"] is None
    assert found["a.txt"] in list_files(tmp_path).entries


def test_not_a_repository_is_not_raised_for_plain_folders(tmp_path: Path) -> None:
    write(tmp_path, {"HEAD": "x"})
    assert paths(tmp_path) == {"HEAD"}
    (tmp_path / "objects").mkdir()
    with pytest.raises(NotARepository):
        list_files(tmp_path)
