"""Every change is told, nothing ignored is watched."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from laguna_context import watching
from laguna_context.barrier import Barrier
from laguna_context.errors import ContextError
from laguna_context.listing import Selection, list_files
from laguna_context.watching import Changes, Watcher, watch
from support.repositories import git, repository, write

PATIENCE = 20.0


class Watched:
    """A watch in progress, and a consumer that keeps its own listing by what it is told."""

    def __init__(self, root: Path, selection: Selection, changes: AsyncIterator[Changes]) -> None:
        self.root = root
        self.selection = selection
        self.told: set[str] = set()
        self.rescans = 0
        self._changes = changes

    async def next(self) -> Changes:
        changes = await asyncio.wait_for(anext(self._changes), PATIENCE)
        self.told |= changes.paths
        self.rescans += changes.rescan
        return changes

    async def until(self, done: Callable[[Watched], bool]) -> None:
        while not done(self):
            await self.next()

    async def quiet(self) -> None:
        """Write a last file and wait until it is told: what came before it has been told by then, or never will be."""
        name = f"last-{len(self.told)}-{self.rescans}.txt"
        write(self.root, {name: "x"})
        await self.until(lambda watched: name in watched.told)
        self.told.discard(name)


@asynccontextmanager
async def watched(root: Path, selection: Selection | None = None) -> AsyncIterator[Watched]:
    stop = asyncio.Event()
    chosen = selection or Selection()
    changes = watch(root, selection=chosen, stop=stop)
    try:
        found = Watched(root, chosen, changes)
        first = await found.next()
        assert first == Changes(frozenset(), True)
        found.rescans = 0
        yield found
    finally:
        stop.set()
        await changes.aclose()  # type: ignore[attr-defined]


async def test_edits_additions_and_deletions(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a.txt": "x", "d/b.txt": "x", "d/c.txt": "x", ".gitignore": "*.log\n"}, commit=True)
    async with watched(root) as told:
        write(root, {"a.txt": "y", "d/new.txt": "x", "d/noise.log": "x"})
        (root / "d/b.txt").unlink()
        await told.until(lambda w: {"a.txt", "d/new.txt", "d/b.txt"} <= w.told)
        await told.quiet()
        assert told.told == {"a.txt", "d/new.txt", "d/b.txt"}
        assert told.rescans == 0


async def test_a_file_saved_by_renaming_is_one_change(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a.txt": "x"}, commit=True)
    async with watched(root) as told:
        write(root, {".a.txt.swp~": "new"})
        (root / ".a.txt.swp~").rename(root / "a.txt")
        await told.quiet()
        assert "a.txt" in told.told


async def test_new_folders_are_watched_whole(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a.txt": "x"}, commit=True)
    async with watched(root) as told:
        write(root, {"new/deep/er/one.txt": "x", "new/two.txt": "x"})
        await told.until(lambda w: {"new/deep/er/one.txt", "new/two.txt"} <= w.told)
        told.told.clear()
        write(root, {"new/deep/er/three.txt": "x", "new/deep/er/one.txt": "changed"})
        await told.until(lambda w: {"new/deep/er/three.txt", "new/deep/er/one.txt"} <= w.told)


async def test_an_empty_folder_is_watched_too(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a.txt": "x", ".gitignore": "*.log\n", "logs/x.log": "x"}, commit=True)
    (root / "empty").mkdir()
    async with watched(root) as told:
        write(root, {"empty/f.txt": "x", "logs/readme.txt": "x"})
        await told.until(lambda w: {"empty/f.txt", "logs/readme.txt"} <= w.told)


async def test_a_moved_folder_tells_every_file_on_both_sides(tmp_path: Path) -> None:
    names = [f"sub{i}/f{j}.txt" for i in range(5) for j in range(4)]
    root = repository(tmp_path, {f"old/{name}": "x" for name in names}, commit=True)
    async with watched(root) as told:
        (root / "old").rename(root / "new")
        expected = {f"{top}/{name}" for top in ("old", "new") for name in names}
        await told.until(lambda w: expected <= w.told)
        told.told.clear()
        write(root, {f"new/{names[0]}": "changed"})
        await told.until(lambda w: w.told == {f"new/{names[0]}"})
        shutil.move(root / "new", tmp_path.parent / f"{tmp_path.name}-away")
        await told.until(lambda w: {f"new/{name}" for name in names} <= w.told)


async def test_mass_changes_are_complete(tmp_path: Path) -> None:
    root = repository(tmp_path, {"start.txt": "x"}, commit=True)
    names = {f"pkg{i % 40}/mod{i}.py" for i in range(3000)}
    async with watched(root) as told:
        write(root, dict.fromkeys(names, "x"))
        await told.until(lambda w: names <= w.told)
        told.told.clear()
        shutil.rmtree(root / "pkg7")
        gone = {name for name in names if name.startswith("pkg7/")}
        await told.until(lambda w: gone <= w.told)
        await told.quiet()
        assert told.told == gone


async def test_a_branch_switch_is_told_with_a_rescan(tmp_path: Path) -> None:
    root = repository(tmp_path, {f"f{i}.txt": "main" for i in range(50)}, commit=True)
    git(root, "checkout", "-q", "-b", "side")
    write(root, {f"f{i}.txt": "side!" for i in range(0, 50, 2)} | {"only/side.txt": "x"})
    git(root, "add", "-A")
    git(root, "commit", "-qm", "side")
    async with watched(root) as told:
        git(root, "checkout", "-q", "main")
        expected = {f"f{i}.txt" for i in range(0, 50, 2)} | {"only/side.txt"}
        await told.until(lambda w: expected <= w.told and w.rescans > 0)
        await told.quiet()
        assert told.told == expected


async def test_a_linked_worktree_hears_of_its_own_head(tmp_path: Path) -> None:
    root = repository(tmp_path / "main", {"a.txt": "x"}, commit=True)
    git(root, "worktree", "add", "-q", str(tmp_path / "side"))
    async with watched(tmp_path / "side") as told:
        git(tmp_path / "side", "commit", "-q", "--allow-empty", "-m", "more")
        git(tmp_path / "side", "checkout", "-q", "--detach", "HEAD~1")
        await told.until(lambda w: w.rescans > 0)


@pytest.mark.parametrize("place", [".gitignore", ".git/info/exclude", ".lagunaignore"])
async def test_edited_ignore_rules(tmp_path: Path, place: str) -> None:
    root = repository(tmp_path, {"build/a.txt": "x", "src/b.txt": "x"})
    async with watched(root) as told:
        write(root, {place: "build/\n"})
        await told.until(lambda w: "build/a.txt" in w.told and w.rescans > 0)
        told.told.clear()
        (root / place).unlink()
        await told.until(lambda w: "build/a.txt" in w.told)
        told.told.clear()
        write(root, {"build/a.txt": "changed"})
        await told.until(lambda w: "build/a.txt" in w.told)


async def test_a_file_becomes_a_folder_and_back(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a": "x"}, commit=True)
    async with watched(root) as told:
        (root / "a").unlink()
        write(root, {"a/inside.txt": "x"})
        await told.until(lambda w: {"a", "a/inside.txt"} <= w.told)
        told.told.clear()
        shutil.rmtree(root / "a")
        write(root, {"a": "y"})
        await told.until(lambda w: {"a", "a/inside.txt"} <= w.told)


async def test_outside_git(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "x", ".gitignore": "out/\n", "out/x.txt": "x"})
    async with watched(tmp_path) as told:
        write(tmp_path, {"a.txt": "y", "out/x.txt": "y", "n/b.txt": "x"})
        await told.until(lambda w: {"a.txt", "n/b.txt"} <= w.told)
        await told.quiet()
        assert told.told == {"a.txt", "n/b.txt"}


async def test_a_selected_submodule(tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner", {"lib.c": "x"}, commit=True)
    root = repository(tmp_path / "r", {"a.txt": "x"})
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "sub")
    async with watched(root, Selection(submodules=True)) as told:
        write(root, {"sub/lib.c": "changed", "sub/new.c": "x"})
        await told.until(lambda w: {"sub/lib.c", "sub/new.c"} <= w.told)


async def test_links_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path / "outside", {"f.txt": "x"})
    root = repository(tmp_path / "r", {"a.txt": "x"})
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "loop").symlink_to(".")
    async with watched(root) as told:
        write(tmp_path / "outside", {"f.txt": "y"})
        await told.quiet()
        assert told.told == set()


async def test_hostile_configuration_does_not_run(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"a.txt": "x"}, commit=True)
    mark = tmp_path / "ran"
    for key in ("core.fsmonitor", "filter.x.clean", "diff.external"):
        git(root, "config", key, f"touch {mark}; cat")
    write(root, {".gitattributes": "* filter=x\n"})
    async with watched(root) as told:
        write(root, {"a.txt": "y", "n/b.txt": "x"})
        await told.until(lambda w: {"a.txt", "n/b.txt"} <= w.told)
    assert not mark.exists()


async def test_a_vanished_root_is_an_error(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"a.txt": "x"})
    async with watched(root) as told:
        shutil.rmtree(root)
        with pytest.raises(ContextError):
            await told.until(lambda _: False)


async def test_stopping_ends_the_watch_and_gives_its_threads_back(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a.txt": "x"})
    stop = asyncio.Event()
    changes = watch(root, selection=Selection(), stop=stop)
    await anext(changes)
    waiting = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0.05)
    stop.set()
    with pytest.raises(StopAsyncIteration):
        await asyncio.wait_for(waiting, PATIENCE)


def inotify_watches() -> int:
    """Watches this process holds, from the kernel's own account."""
    count = 0
    for link in Path("/proc/self/fdinfo").iterdir():
        try:
            count += sum(line.startswith("inotify ") for line in link.read_text().splitlines())
        except OSError:
            continue
    return count


def test_thousands_of_ignored_folders_cost_no_watches(tmp_path: Path) -> None:
    root = repository(tmp_path, {".gitignore": "node_modules/\n", "src/a.js": "x", "src/deep/b.js": "x"}, commit=True)
    for number in range(7_000):
        (root / f"node_modules/p{number % 70}/q{number}").mkdir(parents=True)
    before = inotify_watches()
    watcher = Watcher(root, Selection())
    watcher.start()
    try:
        assert watcher.folders == {"", "src", "src/deep"}
        assert 3 <= inotify_watches() - before <= 6
    finally:
        watcher.close()
    assert wait_for(lambda: inotify_watches() == before)


def wait_for(done: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not done() and time.monotonic() < deadline:
        time.sleep(0.02)
    return done()


async def test_lost_events_are_made_up_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch as large as one that may have overflowed: the paths come from a new listing, not from the events."""
    monkeypatch.setattr(watching, "MANY", 1)
    monkeypatch.setattr(Watcher, "_sorted_out", lambda *_: (False, False, set()))
    root = repository(tmp_path, {"a.txt": "x", "b.txt": "x"}, commit=True)
    async with watched(root) as told:
        write(root, {"a.txt": "y", "b.txt": "y"})
        await told.until(lambda w: {"a.txt", "b.txt"} <= w.told)
        assert told.rescans > 0


async def test_without_watches_left_the_root_is_polled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("OS file watch limit reached.")

    monkeypatch.setattr(watching, "RustNotify", refuse)
    monkeypatch.setattr(watching, "POLL_MS", 50)
    root = repository(tmp_path, {"a.txt": "x"}, commit=True)
    async with watched(root) as told:
        write(root, {"a.txt": "longer", "n/b.txt": "x"})
        await told.until(lambda w: {"a.txt", "n/b.txt"} <= w.told)
    assert "max_user_watches" in caplog.text


def test_paths_told_are_those_of_the_listing(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a.txt": "x", os.fsdecode(b"odd\xff.txt"): "x"}, commit=True)
    watcher = Watcher(root, Selection())
    watcher.start()
    watcher.close()
    assert watcher.known == {entry.path for entry in list_files(root).entries}


class Follower:
    """Takes in changes as a workspace does, one item at a time."""

    def __init__(self, root: Path, barrier: Barrier) -> None:
        self.told: set[str] = set()
        self._stop = asyncio.Event()
        self._changes = watch(root, selection=Selection(), stop=self._stop, barrier=barrier)
        self.task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        async for changes in self._changes:
            await asyncio.sleep(0.02)  # taking in takes a while
            self.told |= changes.paths

    async def close(self) -> None:
        self._stop.set()
        await asyncio.wait_for(self.task, PATIENCE)


@asynccontextmanager
async def followed(tmp_path: Path, root: Path) -> AsyncIterator[tuple[Follower, Barrier]]:
    barrier = Barrier(tmp_path / "marks")
    follower = Follower(root, barrier)
    deadline = time.monotonic() + PATIENCE
    while not await barrier.wait(PATIENCE):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    yield follower, barrier
    await follower.close()


async def test_behind_a_barrier_every_earlier_write_has_been_taken_in(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {f"f{n}.txt": "x" for n in range(50)}, commit=True)
    async with followed(tmp_path, root) as (follower, barrier):
        for number in range(20):
            follower.told.clear()
            expected = {f"f{number}.txt", f"f{number + 20}.txt", f"new{number}/deep/a.txt"}
            write(root, dict.fromkeys(expected, f"{number}"))
            assert await barrier.wait(PATIENCE)
            assert follower.told == expected
        follower.told.clear()
        assert await barrier.wait(PATIENCE)
        assert follower.told == set(), "the barrier's own file is nobody's change"
        assert list(barrier.folder.iterdir()) == []


async def test_many_wait_at_one_barrier(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"a.txt": "x"}, commit=True)
    async with followed(tmp_path, root) as (follower, barrier):
        write(root, {"a.txt": "y"})
        assert all(await asyncio.gather(*(barrier.wait(PATIENCE) for _ in range(20))))
        assert follower.told == {"a.txt"}


async def test_a_barrier_without_events_says_so_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("OS file watch limit reached.")

    barrier = Barrier(tmp_path / "marks")
    assert not await barrier.wait(PATIENCE), "nothing is followed yet"
    monkeypatch.setattr(watching, "RustNotify", refuse)
    monkeypatch.setattr(watching, "POLL_MS", 50)
    root = repository(tmp_path / "r", {"a.txt": "x"}, commit=True)
    follower = Follower(root, barrier)
    await asyncio.sleep(0.2)
    assert not await barrier.wait(PATIENCE), "polling has no events"
    await follower.close()


async def test_who_waits_when_watching_ends_is_told(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"a.txt": "x"}, commit=True)
    async with followed(tmp_path, root) as (follower, barrier):
        shutil.rmtree(barrier.folder)
        waiting = asyncio.create_task(barrier.wait(PATIENCE))
        assert not await waiting, "a mark that cannot be written"
        barrier.folder.mkdir()
        waiting = asyncio.create_task(barrier.wait(PATIENCE))
        await asyncio.sleep(0)
        await follower.close()
        assert not await asyncio.wait_for(waiting, PATIENCE)


async def test_a_name_that_is_not_utf8_is_told_and_so_is_what_follows(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a.py": "a"})
    odd = os.fsdecode(b"caf\xe9.txt")
    async with watched(root) as found:
        for text in ("one", "two, longer"):
            (root / odd).write_text(text)
            await found.until(lambda seen: odd in seen.told)
            found.told.clear()
        write(root, {"a.py": "changed"})
        await found.until(lambda seen: "a.py" in seen.told)
