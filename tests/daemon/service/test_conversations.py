"""Conversations: kept on disk with their ids, resumed, moved onto another model, listed, deleted."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from laguna_context.prompt import Prompt, Span
from laguna_context.template import load_template
from laguna_context.tokens import load_tokenizer
from laguna_daemon.errors import LagunaError, UsageError
from laguna_daemon.schemas import AskRequest, ConversationTurn, Diagnostic, Usage
from laguna_daemon.service import tasks
from laguna_daemon.service.conversations import REENCODED, Conversations
from laguna_daemon.service.talkstore import TalkStore
from laguna_daemon.service.tasks import materials as task_materials
from laguna_daemon.service.tasks import text as task_text
from support.daemon import git, repository

ROOT = Path("/some/repository \udce9")


@pytest.fixture(scope="module")
def materials(laguna_model: Path) -> Any:
    tokenizer = load_tokenizer(laguna_model)
    return SimpleNamespace(tokenizer=tokenizer, template=load_template(laguna_model, tokenizer))


@pytest.fixture
async def held(tmp_path: Path) -> Any:
    found = Conversations(lambda: TalkStore(tmp_path / "conversations.sqlite"))
    yield found
    await found.close()


def prompt(ids: list[int], task: int, **more: Any) -> Prompt:
    return Prompt(
        ids=np.array(ids, dtype=np.uint32),
        prefix_tokens=2,
        overlay_tokens=1,
        task_tokens=task,
        snapshot="s1",
        overlay_seq=3,
        identity="i",
        buffers_used=(),
        notes=(),
        documents=(Span("a \udce9.py", 0, 2),),
        **more,
    )


async def answer(held: Conversations, materials: Any, id: str | None, number: int, root: Path | None = ROOT) -> str:
    """One question and its answer."""
    async with held.turn(id, root, materials) as talk:
        before = talk.ids.ids.tolist() or [1, 2, 3]
        talk.ids.answered(prompt([*before, 7, number], 2, lineage="l1"), [number, 8], (8,))
        talk.answered(ConversationTurn(question=f"Question {number}\nmore", answer="A", usage=Usage(ttft_ms=1.5)))
        held.keep(talk)
    return talk.id


async def test_a_conversation_outlives_the_daemon(tmp_path, materials):
    path = tmp_path / "conversations.sqlite"
    first = Conversations(lambda: TalkStore(path))
    id = await answer(first, materials, None, 10)
    await answer(first, materials, id, 11)
    await first.close()
    assert path.stat().st_mode & 0o777 == 0o600
    second = Conversations(lambda: TalkStore(path))
    async with second.turn(id, ROOT, materials) as talk:
        assert talk.ids.ids.tolist() == [1, 2, 3, 7, 10, 10, 7, 11, 11]
        assert [turn.task.tolist() for turn in talk.ids.turns] == [[7, 10], [7, 11]]
        assert [turn.answer.tolist() for turn in talk.ids.turns] == [[10], [11]]
        assert (talk.ids.snapshot, talk.ids.lineage, talk.ids.overlay_seq) == ("s1", "l1", 3)
        assert talk.ids.documents == (Span("a \udce9.py", 0, 2),)
        assert [turn.question for turn in talk.texts] == ["Question 10\nmore", "Question 11\nmore"]
        assert talk.notices == []
    await second.close()


async def test_lists_are_by_use_and_root(held, materials):
    one = await answer(held, materials, None, 1)
    two = await answer(held, materials, None, 2, Path("/other"))
    three = await answer(held, materials, None, 3, None)
    await answer(held, materials, one, 4)
    assert [found.id for found in await held.listed()] == [one, three, two]
    (found,) = await held.listed(ROOT)
    assert (found.title, found.turns) == ("Question 1", 2)
    assert found.root == "/some/repository \\xe9"
    assert [found.root for found in await held.listed() if found.id == three] == [""]


async def test_deleted_is_gone_from_the_file(held, materials, tmp_path):
    id = await answer(held, materials, None, 123_456)
    await held.delete(id)
    with pytest.raises(UsageError):
        await held.read(id)
    with pytest.raises(UsageError):
        await held.delete(id)
    assert await held.listed() == []
    with sqlite3.connect(tmp_path / "conversations.sqlite") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert b"Question" not in (tmp_path / "conversations.sqlite").read_bytes()


async def test_deleted_while_it_is_answered_stays_deleted(held, materials):
    id = await answer(held, materials, None, 1)
    async with held.turn(id, ROOT, materials) as talk:
        await held.delete(id)
        talk.ids.answered(prompt([1, 2], 1), [3])
        talk.answered(ConversationTurn(question="again", answer="A"))
        held.keep(talk)
    assert await held.listed() == []


async def test_one_question_at_a_time_about_one_root(held, materials):
    id = await answer(held, materials, None, 1)
    async with held.turn(id, ROOT, materials):
        with pytest.raises(UsageError, match="still being answered"):
            async with held.turn(id, ROOT, materials):
                pass
    with pytest.raises(UsageError, match="is about"):
        async with held.turn(id, Path("/other"), materials):
            pass
    with pytest.raises(UsageError, match="There is no conversation"):
        async with held.turn("nothing", ROOT, materials):
            pass
    assert await answer(held, materials, id, 2) == id


async def test_another_model_gets_the_turns_in_its_own_ids(held, materials):
    id = await answer(held, materials, None, 1)
    other = SimpleNamespace(
        tokenizer=SimpleNamespace(fingerprint="another", encode=materials.tokenizer.encode),
        template=materials.template,
    )
    async with held.turn(id, ROOT, other) as talk:
        assert talk.notices == [REENCODED]
        assert talk.ids.ids.size == 0 and talk.ids.lineage == ""
        (turn,) = talk.ids.turns
        assert materials.tokenizer.decode(turn.task).startswith(b"<task>\nQuestion 1\nmore\n</task>")
        assert materials.tokenizer.decode(turn.answer) == b"A"


async def test_old_ones_keep_their_turns_and_the_oldest_go(tmp_path, materials):
    held = Conversations(lambda: TalkStore(tmp_path / "c.sqlite", limit=3, with_ids=1))
    ids = [await answer(held, materials, None, number) for number in range(4)]
    assert [found.id for found in await held.listed()] == ids[:0:-1]
    stored = await held.read(ids[1])
    assert stored.ids.ids.size == 0 and stored.ids.snapshot == ""
    assert [turn.task.tolist() for turn in stored.ids.turns] == [[7, 1]]
    assert (await held.read(ids[3])).ids.ids.size == 6
    await held.close()


async def test_a_damaged_file_costs_no_answer(tmp_path, materials, caplog):
    path = tmp_path / "c.sqlite"
    path.write_bytes(b"no database at all" * 100)
    held = Conversations(lambda: TalkStore(path))
    await answer(held, materials, None, 1)
    with pytest.raises(LagunaError, match="cannot be used"):
        await held.listed()
    assert "was not kept" in caplog.text
    await held.close()


async def test_writers_and_readers_of_two_processes(tmp_path, materials):
    path = tmp_path / "c.sqlite"
    one, two = (Conversations(lambda: TalkStore(path)) for _ in range(2))
    await asyncio.gather(*(answer(held, materials, None, n) for n in range(20) for held in (one, two)))
    await asyncio.gather(one.listed(), two.listed())
    assert len(await one.listed()) == 40
    await one.close()
    await two.close()


def test_two_processes_may_open_a_new_file_at_once(tmp_path):
    def opened(path: Path, together: threading.Barrier) -> int:
        store = TalkStore(path)
        together.wait()
        found = len(store.listed())
        store.close()
        return found

    with ThreadPoolExecutor(8) as pool:
        for number in range(100):
            together = threading.Barrier(8)
            path = tmp_path / f"{number}.sqlite"
            assert list(pool.map(opened, [path] * 8, [together] * 8)) == [0] * 8


# Tasks


def test_the_task_part_of_a_prompt():
    request = AskRequest(
        question=" and mind the lamp ",
        task="fix",
        mode="edit",
        diagnostics=[Diagnostic(path="a.py", line=3, message="undefined name", severity="error", source="lint")],
    )
    found = task_text(request)
    assert "- a.py:3: undefined name (error, lint)\n\nand mind the lamp\n\nChange files" in found
    assert found.startswith("Fix the problems") and found.endswith("or none of them.")
    assert task_text(AskRequest(question="Why?")) == "Why?"


def test_a_review_is_of_the_changes(tmp_path):
    root = repository(tmp_path / "r", {"a b.py": "x = 1\n", ".env": "KEY=1\n"})
    request = AskRequest(question="", task="review")
    with pytest.raises(LagunaError, match="no changes"):
        task_materials(request, root)
    (root / "a b.py").write_text("x = 2\n")
    (root / ".env").write_text("KEY=2\n")
    (root / "new.py").write_text("y = 1\n")
    ((name, text),) = task_materials(request, root)
    assert name == "changes against the last commit"
    assert "-x = 1\n+x = 2" in text and "KEY" not in text
    assert text.endswith("new file, not shown here: new.py")
    assert task_materials(AskRequest(question="Why?"), root) == ()


def test_a_review_of_a_folder_inside_a_repository(tmp_path):
    top = repository(tmp_path / "r", {"sub/a.py": "x = 1\n", "other.py": "y = 1\n", "sub/old.py": "z = 1\n" * 9})
    (top / "sub" / "a.py").write_text("x = 2\n")
    (top / "sub" / "old.py").rename(top / "sub" / "moved.py")
    (top / "other.py").write_text("y = 2\n")
    git(top, "add", "-A")
    ((_, text),) = task_materials(AskRequest(question="", task="review"), top / "sub")
    assert "-x = 1\n+x = 2" in text and "other.py" not in text
    assert "rename from old.py\nrename to moved.py" in text


def test_a_review_before_the_first_commit(tmp_path):
    git(tmp_path, "init", "-q")
    request = AskRequest(question="", task="review")
    with pytest.raises(LagunaError, match="no changes"):
        task_materials(request, tmp_path)
    (tmp_path / "a.py").write_text("x = 1\n")
    git(tmp_path, "add", "a.py")
    (tmp_path / "b.py").write_text("x = 1\n")
    ((_, text),) = task_materials(request, tmp_path)
    assert sorted(text.split("\n")) == ["new file, not shown here: a.py", "new file, not shown here: b.py"]


def test_a_review_outside_git(tmp_path):
    with pytest.raises(LagunaError, match="not in a git repository"):
        task_materials(AskRequest(question="", task="review"), tmp_path)


def test_a_review_of_more_files_than_a_command_line_names(tmp_path, monkeypatch):
    names = [f"a rather long name of a file, number {number}.py" for number in range(50)]
    root = repository(tmp_path / "r", dict.fromkeys(names, "x = 1\n"))
    for name in names:
        (root / name).write_text("x = 2\n")
    request = AskRequest(question="", task="review")
    assert task_materials(request, root)[0][1].count("+x = 2") == 50
    monkeypatch.setattr(tasks, "_MOST_NAMES", 2000)
    with pytest.raises(LagunaError, match="50 files have changed"):
        task_materials(request, root)
