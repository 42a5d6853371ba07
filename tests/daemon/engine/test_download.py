"""Checkpoints from a hub: pinned, resumed, checked. The hub's library is real; the hub is a small one of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from laguna_daemon.engine.profile import load_profile
from laguna_daemon.engine.setup.download import checkpoints
from support.fake_hub import REPOSITORY, REVISION, Hub, serve_hub

WEIGHTS = os.urandom(24_000_000)  # the library writes in pieces of ten million bytes
FILES = {"config.json": b'{"vocab_size": 7}', "model.safetensors": WEIGHTS, "nested/notes.txt": b"text\n"}

# In a process of its own, since the library reads its address once, when it is imported.
DOWNLOAD = """
import json, sys
from laguna_daemon.engine.setup.download import Checkpoint, download, origin
from laguna_daemon.errors import LagunaError
wanted = Checkpoint("Model", sys.argv[1], sys.argv[2])
stages = []
try:
    fresh = download(wanted, progress=lambda step: stages.append(step.stage))
    print(json.dumps({"fresh": fresh, "path": str(wanted.folder), "origin": origin(wanted.folder) == wanted,
                      "stages": list(dict.fromkeys(stages))}))
except LagunaError as error:
    print(json.dumps({"error": str(error), "code": int(error.exit_code)}))
"""


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serve_hub(FILES) as found:
        yield found


def download(
    hub: Hub, data: Path, repository: str = REPOSITORY, revision: str = REVISION, **env: str
) -> dict[str, object]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "LAGUNA_"))}
    done = subprocess.run(
        [sys.executable, "-c", DOWNLOAD, repository, revision],
        env={**kept, "HF_ENDPOINT": hub.address, "HF_HOME": str(data / "hub"), "LAGUNA_DATA_DIR": str(data), **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def visible(data: Path) -> list[str]:
    return sorted(path.name for path in (data / "models").iterdir() if not path.name.startswith("."))


def test_a_checkpoint_arrives_whole_once(hub: Hub, tmp_path: Path) -> None:
    first = download(hub, tmp_path)
    folder = tmp_path / "models" / "Model"
    assert first["fresh"] and first["origin"] and first["path"] == str(folder)
    assert {name: (folder / name).read_bytes() for name in FILES} == FILES
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json", "laguna-origin.json", "model.safetensors", "nested",
    ]  # fmt: skip
    assert isinstance(first["stages"], list) and "verify" in first["stages"]
    reads = len(hub.reads)
    again = download(hub, tmp_path)
    assert again["fresh"] is False and len(hub.reads) == reads
    other = download(hub, tmp_path, revision="f" * 40)
    assert "already holds" in str(other["error"]) and other["code"] == 4


def test_a_transfer_that_breaks_off_goes_on_from_there(hub: Hub, tmp_path: Path) -> None:
    hub.cut_once["model.safetensors"] = 23_000_000
    assert download(hub, tmp_path)["fresh"] is True
    first, second = [wanted for name, wanted in hub.reads if name == "model.safetensors"]
    assert first == "" and int(second.removeprefix("bytes=").split("-")[0]) >= 10_000_000
    assert (tmp_path / "models" / "Model" / "model.safetensors").read_bytes() == WEIGHTS


def test_a_run_that_failed_is_continued_file_by_file(hub: Hub, tmp_path: Path) -> None:
    hub.cut["model.safetensors"] = 0
    failed = download(hub, tmp_path)
    assert failed.get("code") == 4 and "could not be downloaded" in str(failed["error"])
    assert visible(tmp_path) == []
    (staging,) = (tmp_path / "models").glob(".Model.*.part")
    orphan = staging / ".cache" / "huggingface" / "download" / "x.0123.incomplete"
    orphan.write_bytes(b"left by a killed run")
    hub.cut.clear()
    hub.reads.clear()
    assert download(hub, tmp_path)["fresh"] is True
    assert {name for name, _ in hub.reads} == {"model.safetensors"}
    assert not staging.exists()


def test_bytes_that_are_not_the_hubs_are_refused(hub: Hub, tmp_path: Path) -> None:
    hub.altered["model.safetensors"] = WEIGHTS[:-1] + bytes([WEIGHTS[-1] ^ 1])
    failed = download(hub, tmp_path)
    assert "model.safetensors" in str(failed["error"]) and failed["code"] == 4
    assert visible(tmp_path) == []
    hub.altered.clear()
    hub.reads.clear()
    assert download(hub, tmp_path)["fresh"] is True
    assert {name for name, _ in hub.reads} == {"model.safetensors"}


def test_only_a_commit_is_a_revision(hub: Hub, tmp_path: Path) -> None:
    for revision in ("main", "", "0123abc"):
        assert download(hub, tmp_path, revision=revision)["code"] == 2
    assert hub.reads == []


def test_what_the_hub_does_not_have_is_said(hub: Hub, tmp_path: Path) -> None:
    assert "has no" in str(download(hub, tmp_path, repository="maker/other")["error"])
    assert "has no" in str(download(hub, tmp_path, revision="f" * 40)["error"])
    offline = download(hub, tmp_path, HF_HUB_OFFLINE="1")
    assert "could not be downloaded" in str(offline["error"])


def test_a_profile_names_its_pair() -> None:
    target, draft = checkpoints(load_profile("laguna-s-2.1-4x24gb"))
    assert (target.repository, draft.repository) == (
        "poolside/Laguna-S-2.1-INT4", "poolside/Laguna-S-2.1-DFlash-INT4",
    )  # fmt: skip
    assert len(target.revision) == len(draft.revision) == 40
    assert checkpoints(load_profile("cpu")) == []
