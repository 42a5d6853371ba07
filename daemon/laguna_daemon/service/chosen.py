"""The profile that ``laguna-daemon engine use`` chose, kept in the state folder.

The user's config.toml is never rewritten: it is theirs, comments and all. So the order is: the flag and the
environment, then ``profile`` in config.toml, then this file, then the GPUs found.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from laguna_daemon.config import Settings
from laguna_daemon.engine.gpus import FoundGpu
from laguna_daemon.engine.profile import Choice, choose_profile, load_profile
from laguna_daemon.paths import state_dir

AUTO = "auto"
"""Instead of a profile's name: let the GPUs decide again."""

USED = "chosen with laguna-daemon engine use"


def choice_file() -> Path:
    """One line, the profile's name."""
    return state_dir() / "profile"


def remembered() -> str | None:
    """The profile chosen last, None if the GPUs decide."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return choice_file().read_text(encoding="utf-8").strip() or None
    return None


def remember(name: str) -> None:
    """Keep ``name`` for the daemons to come; `AUTO` forgets what was kept."""
    if name == AUTO:
        choice_file().unlink(missing_ok=True)
        return
    part = choice_file().with_suffix(".new")
    part.write_text(name + "\n", encoding="utf-8")
    part.replace(choice_file())


def choose(settings: Settings, gpus: tuple[FoundGpu, ...], asked: str | None = None) -> Choice:
    """The profile to start: ``asked`` of this daemon, else by the settings, what was remembered, and the GPUs found."""
    if asked == AUTO:
        return choose_profile(settings.model_copy(update={"profile": None}), gpus)
    if asked:
        return Choice(load_profile(asked), USED)
    kept = remembered()
    if kept and not settings.profile and not settings.engine.url:
        return Choice(load_profile(kept), USED)
    return choose_profile(settings, gpus)
