"""Model checkpoints from the Hugging Face hub: at a pinned revision, resumable, checked file by file.

A transfer that breaks off goes on from where it was; a run that ended is continued file by file.

Only on request, and the only place that talks to the hub. HF_ENDPOINT, HF_TOKEN and the hub's other variables work as
usual.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laguna_daemon.engine.profile import Profile
from laguna_daemon.engine.setup.progress import Progress, Step, silent
from laguna_daemon.engine.setup.storage import (
    DISK_FULL,
    DOWNLOAD_LOCK,
    InstallFailed,
    discard,
    disk_guard,
    gigabytes,
    models_dir,
    one_at_a_time,
    publish,
    require_space,
    size_of,
    write_durably,
)
from laguna_daemon.errors import EngineUnavailable, LagunaError, UsageError

if TYPE_CHECKING:
    from huggingface_hub.hf_api import RepoFile

ORIGIN = "laguna-origin.json"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_BLOCK = 1 << 20
_LOOK_EVERY = 0.5  # seconds between two looks at what has arrived


@dataclass(frozen=True)
class Checkpoint:
    """A repository of the hub at one commit, and the folder under ``models`` that it goes to."""

    name: str
    repository: str
    revision: str

    @property
    def folder(self) -> Path:
        """Where it lies once it is whole."""
        return models_dir() / self.name


def checkpoints(profile: Profile) -> list[Checkpoint]:
    """Target and draft of a profile, each at its pinned revision; empty if the profile names no repository."""
    sections = [profile.model, profile.draft]
    return [
        Checkpoint(section.name, section.repository, section.revision)
        for section in sections
        if section and section.repository
    ]


def origin(folder: Path) -> Checkpoint | None:
    """Where a model folder was downloaded from, None if it was not downloaded by us."""
    try:
        told = json.loads((folder / ORIGIN).read_text(encoding="utf-8"))
        return Checkpoint(folder.name, str(told["repository"]), str(told["revision"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def download(checkpoint: Checkpoint, *, progress: Progress = silent) -> bool:
    """Bring a checkpoint into its folder; False if it was there already.

    Raises UsageError for a revision that is not a commit, EngineUnavailable if the hub cannot be reached or a file
    is not what the hub says, InstallFailed for a disk that is full or a folder that holds something else.
    """
    if not _COMMIT.fullmatch(checkpoint.revision):
        raise UsageError(
            f"{checkpoint.repository} has no pinned revision ({checkpoint.revision or 'none is named'}); "
            "a branch can become another model overnight.",
            "Name a commit of 40 hexadecimal digits: --revision.",
        )
    if _present(checkpoint):
        return False
    waiting = Step("wait", "another download is running; waiting for it")
    with one_at_a_time(lambda: progress(waiting), DOWNLOAD_LOCK):
        if _present(checkpoint):
            return False
        staging = models_dir() / f".{checkpoint.name}.{checkpoint.revision[:12]}.part"
        with disk_guard(staging), _hub_errors(checkpoint):
            staging.mkdir(mode=0o700, exist_ok=True)
            _drop_partial_files(staging)
            files = _files(checkpoint)
            total = sum(file.size for file in files)
            missing = max(total - size_of(staging), 0)
            progress(Step("cost", f"{checkpoint.name} takes {gigabytes(missing)} to download and of disk space"))
            require_space(staging, missing)
            with _watched(checkpoint, staging, total, progress):
                _fetch(checkpoint, staging)
        with disk_guard(staging):
            _verify(checkpoint, files, staging, progress)
            discard(staging / ".cache")
        told = {"repository": checkpoint.repository, "revision": checkpoint.revision}
        write_durably(staging / ORIGIN, json.dumps(told, indent=2) + "\n")
        publish(staging, checkpoint.folder)
    return True


def _drop_partial_files(staging: Path) -> None:
    """Remove what a killed run left of single files: the library names them anew each time."""
    for partial in (staging / ".cache").rglob("*.incomplete"):
        partial.unlink()


def _present(checkpoint: Checkpoint) -> bool:
    folder = checkpoint.folder
    if not folder.exists():
        return False
    found = origin(folder)
    if found == checkpoint:
        return True
    what = f"{found.repository} at {found.revision}" if found else "a model that was not downloaded here"
    raise InstallFailed(
        f"{folder} already holds {what}; it is left alone.",
        "Move it away first, or use it as it is by naming it in engine.model.",
    )


def _files(checkpoint: Checkpoint) -> list[RepoFile]:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    tree = HfApi().list_repo_tree(checkpoint.repository, recursive=True, revision=checkpoint.revision)
    return [item for item in tree if isinstance(item, RepoFile)]


def _fetch(checkpoint: Checkpoint, staging: Path) -> None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    snapshot_download(checkpoint.repository, revision=checkpoint.revision, local_dir=staging)


@contextlib.contextmanager
def _watched(checkpoint: Checkpoint, staging: Path, total: int, progress: Progress) -> Iterator[None]:
    """Report the bytes that have arrived while the block runs."""
    done = threading.Event()

    def look() -> None:
        while not done.wait(_LOOK_EVERY):
            arrived = min(size_of(staging), total)
            progress(Step("download", f"downloading {checkpoint.name}", arrived, total, "bytes"))

    watcher = threading.Thread(target=look, name="download-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _verify(checkpoint: Checkpoint, files: list[RepoFile], staging: Path, progress: Progress) -> None:
    """Compare every file with the hub's own checksum; a wrong one is removed, so that the next run fetches it again."""
    total, done = sum(file.size for file in files), 0
    for file in files:
        progress(Step("verify", f"checking {checkpoint.name}", done, total, "bytes"))
        path = staging / file.path
        if not path.is_file() or not _matches(path, file):
            path.unlink(missing_ok=True)
            raise EngineUnavailable(
                f"{file.path} of {checkpoint.repository} is not what the hub says it is; it was removed.",
                "Run the same command again: only that file is downloaded anew.",
            )
        done += file.size


def _matches(path: Path, file: RepoFile) -> bool:
    if path.stat().st_size != file.size:
        return False
    if file.lfs is not None:
        digest, wanted = hashlib.sha256(), file.lfs.sha256
    else:
        # Small files are named by git's own object id.
        digest, wanted = hashlib.sha1(f"blob {file.size}\0".encode(), usedforsecurity=False), file.blob_id
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest() == wanted


@contextlib.contextmanager
def _hub_errors(checkpoint: Checkpoint) -> Iterator[None]:
    """Turn what the hub's library raises into one message; a full disk is left to the disk's own."""
    from huggingface_hub import errors

    where = f"{checkpoint.repository} at {checkpoint.revision[:12]}"
    try:
        yield
    except errors.GatedRepoError as error:
        raise EngineUnavailable(
            f"{where} asks for an account that has accepted its terms.", "Accept them on its page and set HF_TOKEN."
        ) from error
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        raise EngineUnavailable(
            f"The hub has no {where}.", "Check the names; for a private repository set HF_TOKEN."
        ) from error
    except Exception as error:
        full = isinstance(error, OSError) and error.errno in DISK_FULL
        if full or isinstance(error, LagunaError | MemoryError):
            raise
        # The library lets its HTTP client's exceptions through, and has changed that client between releases.
        raise EngineUnavailable(
            f"{where} could not be downloaded: {_first_line(error)}",
            "Check the network (HF_ENDPOINT names a mirror), then run the same command again: it continues.",
        ) from error


def _first_line(error: Any) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
