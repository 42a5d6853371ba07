"""A warm repository stays warm: the daemon before an engine whose cache is as small and as forgetful as vLLM's."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from laguna_daemon.config import Settings
from laguna_daemon.errors import EngineUnavailable
from laguna_daemon.residency.work import Work
from laguna_daemon.schemas import EngineStatus
from laguna_daemon.service.warming import Warmer
from support.daemon import Home, commit, repository, until
from support.daemon_api import Daemon
from support.engine_probe import Probe

BLOCK = 128
FILES = {f"part_{n}.py": f"PART_{n} = {n}\n" * 60 for n in range(12)}
OFF = {"LAGUNA_WARM__AUTOMATIC": "false", "LAGUNA_COMPLETION__PREFIX_CHARS": "100000"}
HomeFactory = Callable[..., Home]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "lamp", FILES)


def other(tmp_path: Path) -> Path:
    return repository(tmp_path / "other", {name: text.replace("PART", "OTHER") for name, text in FILES.items()})


def engine(home: Home) -> Probe:
    return Probe(home.runtime / "engine.sock")


def starts_with(longer: list[int], shorter: list[int]) -> bool:
    return longer[: len(shorter)] == shorter


def same(requests: list[dict[str, Any]], prefix: list[int]) -> list[dict[str, Any]]:
    """Those requests that are segments or touches of a prefix."""
    return [entry for entry in requests if starts_with(prefix, entry["prompt"])]


def test_a_warm_up_is_a_row_of_segments_and_the_question_finds_it(make_home: HomeFactory, repo: Path) -> None:
    home = make_home("--prefill-speed", "4000", **OFF)
    daemon = Daemon(home)
    events = daemon.warm(repo)
    segments = [entry["prompt"] for entry in engine(home).requests()]
    assert len(segments) >= 3
    assert all(starts_with(longer, shorter) for shorter, longer in pairwise(segments))
    assert {entry["max_tokens"] for entry in engine(home).requests()} == {1}
    progress = [event["done"] for event in events if event.get("stage") == "prefill"]
    assert progress == [len(ids) for ids in segments]
    warm = daemon.root(repo)
    assert (warm["residency"], warm["warm_tokens"]) == ("resident", len(segments[-1]))
    usage = daemon.ask(repo, "What is part 3?")
    assert usage["cached_tokens"] >= warm["prefix_tokens"] // BLOCK * BLOCK
    assert usage["broke_at"] is None
    assert len(engine(home).requests()) == len(segments) + 1, "a warm question is one request"
    assert daemon.warm(repo)[-1]["usage"]["prefilled_tokens"] == 0
    assert len(engine(home).requests()) == len(segments) + 1, "what is warm is not warmed again"


def test_completions_do_not_evict_what_is_touched(make_home: HomeFactory, repo: Path) -> None:
    home = make_home("--blocks", "66", **OFF)  # the prefix takes 38 of them
    daemon = Daemon(home)
    daemon.ask(repo, "first")
    for _ in range(12):
        daemon.complete(250)
    computed = sum(len(entry["prompt"]) for entry in engine(home).requests()) - daemon.root(repo)["prefix_tokens"]
    assert computed > 66 * BLOCK, "as many tokens as the pool holds, or this shows nothing"
    usage = daemon.ask(repo, "second")
    assert usage["cached_tokens"] >= daemon.root(repo)["prefix_tokens"] // BLOCK * BLOCK
    assert usage["broke_at"] is None
    assert daemon.root(repo)["evictions"] == 0


def test_a_closed_root_is_not_kept(make_home: HomeFactory, repo: Path, tmp_path: Path) -> None:
    home = make_home("--blocks", "110", **OFF, LAGUNA_DAEMON__MAX_WORKSPACES="1")  # both prefixes would fit
    daemon, probe = Daemon(home), engine(home)
    daemon.ask(repo, "first")
    closed = probe.requests()[-1]["prompt"][: daemon.root(repo)["prefix_tokens"]]
    daemon.ask(other(tmp_path), "second")
    daemon.complete(250)
    before = len(probe.requests())
    for _ in range(12):
        daemon.complete(250)
    later = probe.requests()[before:]
    assert any(entry["max_tokens"] == 1 for entry in later), "the open one is touched, or this shows nothing"
    assert same(later, closed) == []


def test_a_warm_up_knows_what_was_written_before_it(make_home: HomeFactory, repo: Path) -> None:
    daemon = Daemon(make_home(**OFF))
    daemon.ask(repo, "first")
    for number in range(3):
        (repo / f"new_{number}.py").write_text(f"NEW_{number} = 1\n" * 40)
        daemon.warm(repo)
        usage = daemon.ask(repo, "and now?")
        assert usage["cached_tokens"] >= daemon.root(repo)["prefix_tokens"] // BLOCK * BLOCK


def test_a_prefix_that_never_fits_says_so(make_home: HomeFactory, repo: Path) -> None:
    daemon = Daemon(make_home("--blocks", "30"))
    daemon.warm(repo)
    assert daemon.root(repo)["waits_for"] == "it is larger than the engine's KV memory"


def test_without_the_daemon_between_they_do_and_it_is_said(make_home: HomeFactory, repo: Path) -> None:
    home = make_home("--blocks", "66", **OFF)
    daemon, probe = Daemon(home), engine(home)
    daemon.ask(repo, "first")
    for number in range(10):
        probe.complete([1000 + 20 * number + n for n in range(1000)])
    usage = daemon.ask(repo, "second")
    assert usage["cached_tokens"] < daemon.root(repo)["prefix_tokens"] / 2
    assert usage["broke_at"] is not None
    assert daemon.root(repo)["evictions"] == 1
    assert daemon.root(repo)["residency"] == "resident", "the question itself made it warm again"


def test_a_warm_up_waits_while_a_completion_is_in_flight(make_home: HomeFactory, repo: Path) -> None:
    home = make_home("--prefill-speed", "1500", "--decode-speed", "20", **OFF)
    daemon, probe = Daemon(home), engine(home)
    probe.answers({"when": "word", "answer": " ".join(["pass"] * 40)})
    warming = threading.Thread(target=daemon.warm, args=(repo,))
    warming.start()
    until(lambda: len(probe.requests()) >= 2)
    completion = threading.Thread(target=daemon.complete, args=(50, 30))
    completion.start()
    until(lambda: any(entry["max_tokens"] == 30 for entry in probe.requests()))
    before = len(probe.requests())
    seen = []
    while completion.is_alive():
        seen.append(len(probe.requests()) if completion.is_alive() else before)
        time.sleep(0.05)
    assert len(seen) > 5, "the completion took some time, or this shows nothing"
    assert max(seen[:-1]) == before, "no segment was begun while it ran"
    warming.join(timeout=60)
    assert daemon.root(repo)["residency"] == "resident"


def test_a_cold_question_joins_the_warm_up_of_its_repository(make_home: HomeFactory, repo: Path) -> None:
    home = make_home("--prefill-speed", "1500", **OFF)
    daemon, probe = Daemon(home), engine(home)
    warming = threading.Thread(target=daemon.warm, args=(repo,))
    warming.start()
    until(lambda: len(probe.requests()) >= 2)
    usage = daemon.ask(repo, "What is part 3?")
    warming.join(timeout=60)
    # A segment that the question broke off was computed in part, which the next one finds.
    whole = [entry for entry in probe.requests() if entry["finish"] != "abort"]
    computed = sum(len(entry["prompt"]) - entry["cached_tokens"] for entry in whole)
    assert computed < usage["prompt_tokens"] + (len(whole) + 1) * BLOCK, "nothing was computed twice"
    assert 0 < usage["cached_tokens"] < usage["prompt_tokens"], "it found what the warm-up had done by then"
    assert daemon.root(repo)["residency"] == "resident"


def test_a_root_is_warmed_when_it_is_opened_and_again_when_it_was_lost(make_home: HomeFactory, repo: Path) -> None:
    home = make_home("--blocks", "66", LAGUNA_COMPLETION__PREFIX_CHARS="100000")
    daemon, probe = Daemon(home), engine(home)
    home.json("context", "--json", cwd=repo)
    until(lambda: daemon.root(repo).get("residency") == "resident")
    assert daemon.ask(repo, "first")["cached_tokens"] >= 30 * BLOCK
    for number in range(10):
        probe.complete([1000 + 20 * number + n for n in range(1000)])
    prefix = daemon.root(repo)["prefix_tokens"]
    # A long chat elsewhere is more than touching can stand against: the daemon knows, and warms again when it is over.
    daemon.ask(None, daemon.text(1400))
    until(lambda: daemon.root(repo)["residency"] == "resident")
    time.sleep(0.5)
    assert daemon.ask(repo, "second")["cached_tokens"] >= prefix // BLOCK * BLOCK


def test_of_two_repositories_the_one_used_last_is_not_evicted_unasked(
    make_home: HomeFactory, repo: Path, tmp_path: Path
) -> None:
    home = make_home("--blocks", "66")
    daemon, probe = Daemon(home), engine(home)
    second = other(tmp_path)
    daemon.ask(repo, "first")
    prefix = daemon.root(repo)["prefix_tokens"]
    home.json("context", "--json", cwd=second)
    until(lambda: "push out" in daemon.root(second).get("waits_for", ""))
    assert daemon.ask(repo, "still warm?")["cached_tokens"] >= prefix // BLOCK * BLOCK
    daemon.warm(second)
    assert (daemon.root(second)["residency"], daemon.root(repo)["residency"]) == ("resident", "evicted")
    before = len(probe.requests())
    time.sleep(1.0)
    assert len(probe.requests()) == before, "the first is not warmed again on its own"
    daemon.warm(repo, "pin")
    assert daemon.root(repo)["pinned"]
    assert daemon.ask(second, "mine now")["broke_at"] is not None
    until(lambda: daemon.root(repo)["residency"] == "resident", timeout=40)
    daemon.warm(repo, "unpin")
    assert not daemon.root(repo)["pinned"]


def test_a_superseded_snapshot_is_dropped_and_a_stopped_warm_up_ends(make_home: HomeFactory, repo: Path) -> None:
    home = make_home("--prefill-speed", "1000", **OFF)
    daemon, probe = Daemon(home), engine(home)
    warming = threading.Thread(target=daemon.warm, args=(repo,))
    warming.start()
    until(lambda: len(probe.requests()) >= 2)
    daemon.warm(repo, "stop")
    warming.join(timeout=30)
    assert not warming.is_alive()
    until(lambda: probe.running() == 0)
    done = len(probe.requests())
    found = daemon.root(repo)
    assert found["residency"] == "cold"
    assert 0 < found["warm_tokens"] < found["prefix_tokens"]
    assert found["waits_for"] == "stopped by the user"
    time.sleep(0.5)
    assert len(probe.requests()) == done


def test_requests_never_preempt_each_other_and_a_full_queue_is_refused(make_home: HomeFactory, repo: Path) -> None:
    home = make_home(
        *("--blocks", "66", "--prefill-speed", "8000", "--decode-speed", "40"), **OFF, LAGUNA_DAEMON__QUEUE="2"
    )
    daemon, probe = Daemon(home), engine(home)
    probe.answers({"when": "word", "answer": "x " * 900}, {"when": "story", "answer": "y " * 900})
    asking = threading.Thread(target=daemon.ask, args=(repo, "a long story"), kwargs={"output": 120})
    asking.start()
    until(lambda: probe.running() >= 1)
    results: list[dict[str, Any]] = []
    threads = [
        threading.Thread(target=lambda: results.append(daemon.ask(None, daemon.text(1500), output=40)))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in [asking, *threads]:
        thread.join(timeout=120)
    refused = [found for found in results if found.get("kind") == "error"]
    assert refused
    assert {found["exit_code"] for found in refused} == {5}
    assert "busy" in refused[0]["error"]
    assert len(results) - len(refused) >= 2, "what was admitted or queued was answered"
    assert probe.metric("num_preemptions_total") == 0


def test_what_was_used_last_is_opened_and_warmed_by_the_next_daemon(make_home: HomeFactory, repo: Path) -> None:
    home = make_home()
    Daemon(home).ask(repo, "first")
    home.run("stop")
    daemon = Daemon(home)
    until(lambda: daemon.root(repo).get("residency") == "resident", timeout=60)
    assert daemon.ask(repo, "second")["cached_tokens"] >= daemon.root(repo)["prefix_tokens"] // BLOCK * BLOCK


def test_idle_compaction_is_warmed_before_the_next_question(make_home: HomeFactory, repo: Path) -> None:
    home = make_home(LAGUNA_WARM__IDLE_COMPACTION="1")
    daemon = Daemon(home)
    before = daemon.ask(repo, "first")["snapshot"]
    for number in range(2):
        (repo / f"part_{number}.py").write_text(f"CHANGED_{number} = 1\n" * 8)
    commit(repo, "changed")
    daemon.ask(repo, "second")
    until(lambda: daemon.root(repo)["residency"] == "resident" and daemon.root(repo)["overlay_tokens"] > 0)
    changed = until(lambda: (found := daemon.ask(repo, "third"))["snapshot"] != before and found, every=2.5)
    assert changed["cached_tokens"] > BLOCK
    assert daemon.ask(repo, "fourth")["broke_at"] is None


def test_the_command_and_the_status_say_where_a_prefix_is(make_home: HomeFactory, repo: Path) -> None:
    home = make_home(**OFF)
    home.json("start", "--wait", "--json")
    done = home.run("warm", cwd=repo)
    assert done.returncode == 0, done.stderr
    assert "is resident" in done.stderr
    assert "resident" in home.run("status").stdout
    assert home.run("warm", "--pin", "--stop", cwd=repo).returncode == 2
    assert "no longer pinned" in home.run("warm", "--unpin", cwd=repo).stderr


def test_a_warm_up_that_is_stopped_before_its_turn_is_not_waited_for(
    make_home: HomeFactory, repo: Path, tmp_path: Path
) -> None:
    home = make_home("--prefill-speed", "800", **OFF)
    daemon, second, probe = Daemon(home), other(tmp_path), engine(home)
    first = threading.Thread(target=daemon.warm, args=(repo,))
    first.start()
    until(lambda: len(probe.requests()) >= 1)
    told: list[dict[str, Any]] = []
    waiting = threading.Thread(target=lambda: told.extend(Daemon(home).warm(second)), daemon=True)
    waiting.start()
    until(lambda: daemon.root(second).get("state") == "open")
    time.sleep(0.3)
    daemon.warm(second, "stop")
    waiting.join(timeout=20)
    assert not waiting.is_alive()
    assert told[-1]["kind"] == "notice"
    assert "before it began" in told[-1]["message"]
    first.join(timeout=60)
    assert daemon.root(repo)["residency"] == "resident"


def service(phase: str, state: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """As much of a service as a warmer without roots needs."""
    monkeypatch.setenv("LAGUNA_STATE_DIR", str(state))
    settings = Settings()
    status = EngineStatus(phase=phase, error="The model is gone.")
    hosting = SimpleNamespace(work=Work(settings, lambda: None), status=lambda: status)
    workspaces = SimpleNamespace(opened=list)
    return SimpleNamespace(hosting=hosting, settings=settings, workspaces=workspaces, changed=lambda: None)


@pytest.mark.parametrize("phase", ["failed", "stopped", "backoff", "starting"])
async def test_who_waits_for_a_warm_up_is_told_if_no_engine_comes(
    phase: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warmer = Warmer(service(phase, tmp_path, monkeypatch))
    warmer.start()
    wishes = [warmer.wish(tmp_path / name) for name in ("one", "two")]
    await asyncio.sleep(0.05)
    for wish in wishes:
        if phase in ("failed", "stopped"):
            assert wish.moved.is_set()
            with pytest.raises(EngineUnavailable, match="The model is gone"):
                await wish.done
        else:
            assert not wish.done.done(), "one that is starting will do it"
    await warmer.stop()


async def test_a_warm_up_that_fails_each_time_is_tried_after_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(Warmer):
        tried = 0

        async def _restore(self) -> None:
            pass

        def _candidates(self) -> list[Any]:
            return [None]

        async def _tend(self, opened: Any) -> bool:
            self.tried += 1
            self.poke()  # as every warm-up does when it ends
            raise EngineUnavailable("The engine failed while answering.")

    warmer = Failing(service("ready", tmp_path, monkeypatch))
    warmer.start()
    warmer.poke()
    await asyncio.sleep(0.3)
    assert warmer.tried == 1
    async with asyncio.timeout(0.5):
        await warmer.wish(tmp_path).done  # nobody has to wait for that
    async with asyncio.timeout(5):
        while warmer.tried < 2:  # noqa: ASYNC110 - nothing else tells
            await asyncio.sleep(0.05)
    await warmer.stop()
