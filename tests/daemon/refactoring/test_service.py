"""The service method that an editor uses, and what it does about text that is not saved."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from laguna_daemon import edits
from laguna_daemon.config import load_settings
from laguna_daemon.schemas import Event, NoticeEvent, RefactorRequest, UnsavedRequest
from laguna_daemon.service.service import Service
from support.daemon import Home, git, repository
from support.engine_probe import Probe
from support.scripts import block

INSTRUCTION = "Rename `one` to `uno`"
OTHER = "zero\none\n"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"a.txt": "one\n", "b.txt": "one b\n"})


@pytest.fixture
async def service(make_home, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    home: Home = make_home()
    for name, value in home.env.items():
        monkeypatch.setenv(name, value)
    service = Service(load_settings())
    await service.start()
    await service.hosting.ready(lambda event: None)  # type: ignore[arg-type]
    Probe(home.runtime / "engine.sock").answers(
        {"when": INSTRUCTION, "answer": block("a.txt", "one", "uno") + block("b.txt", "one b", "uno b")}
    )
    yield service
    await service.stop()


async def propose(service: Service, repo: Path, target: str) -> tuple[object, list[Event]]:
    events: list[Event] = []
    request = RefactorRequest(root=str(repo), instruction=INSTRUCTION, target=target, max_rounds=1)
    return await service.propose(request, events.append), events


async def test_a_proposal_is_a_change_set_and_nothing_is_written(service: Service, repo: Path) -> None:
    outcome, events = await propose(service, repo, "editor")
    assert outcome.report.outcome == "complete"
    assert outcome.changes.paths == ("a.txt", "b.txt")
    assert {event.kind for event in events} >= {"plan", "round", "file", "turn"}
    assert git(repo, "status", "--porcelain") == ""
    assert service.status().totals["answers"] == 1


async def test_unsaved_text_is_edited_in_the_editor_and_refused_on_the_disk(service: Service, repo: Path) -> None:
    service.buffers.set("editor", repo / "a.txt", OTHER, 2)
    service.buffers.set("editor", repo / "b.txt", "one b\n", 1)  # open, and as on the disk
    asked = UnsavedRequest(root=str(repo), paths=["a.txt", "b.txt", "c.txt"])
    assert await service.unsaved(asked) == ["a.txt"]
    outcome, events = await propose(service, repo, "disk")
    assert outcome.changes is None
    assert outcome.report.outcome == "refused"
    assert outcome.report.unsaved == ["a.txt"]
    assert [(one.path, one.code) for one in outcome.report.refused] == [("a.txt", "unsaved")]
    assert any("a.txt" in event.message for event in events if isinstance(event, NoticeEvent))
    outcome, _ = await propose(service, repo, "editor")
    assert dict(outcome.changes.buffers) == {"a.txt": OTHER}
    (first, second) = edits.text_edits(outcome.changes)
    assert (first.path, first.unsaved, first.edits[0].start.line, first.edits[0].new_text) == (
        "a.txt",
        True,
        1,
        "uno\n",
    )
    assert second.path == "b.txt"
    service.buffers.drop("editor")
    outcome, _ = await propose(service, repo, "disk")
    assert outcome.report.outcome == "complete"
