"""Settings: flags, then LAGUNA_* variables, then the user's config.toml, then defaults.

A repository's ``.laguna.toml`` is not read here: it may only choose files (``laguna_daemon.service.roots``).
"""

from __future__ import annotations

import tomllib
from datetime import time
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from laguna_daemon.errors import UsageError
from laguna_daemon.paths import config_file


class EngineSettings(BaseModel):
    """Where the engine comes from and how it is started."""

    python: Path | None = Field(default=None, description="Python of an environment that has vLLM")
    model: Path | None = Field(default=None, description="folder of the model, instead of the profile's")
    draft: Path | None = Field(default=None, description="folder of the draft model")
    command: list[str] | None = Field(
        default=None, description="the engine's start command, instead of vLLM's API server"
    )
    args: dict[str, Any] = Field(default={}, description="flags added to the profile's, by name")
    env: dict[str, str] = Field(default={}, description="variables added to the engine's environment")
    url: str | None = Field(default=None, description="a running vLLM (profile remote)")
    api_key: str | None = Field(default=None, description="key of that vLLM")
    start_timeout: float = Field(default=1800, gt=0, description="seconds until a start has failed")


class ContextSettings(BaseModel):
    """What goes into a prompt."""

    secrets: bool = Field(default=True, description="replace secrets by markers")
    submodules: bool = Field(default=False, description="read submodules too")
    include: list[str] = Field(default=[], description="globs; empty means everything")
    exclude: list[str] = Field(default=[], description="globs")


class CompletionSettings(BaseModel):
    """Inline completion."""

    context: Literal["local", "repository"] = Field(
        default="local", description="what a suggestion sees: the text around the cursor, or the repository too"
    )
    max_tokens: int = Field(default=64, ge=1)
    timeout: float = Field(default=20.0, gt=0, description="seconds until a completion is given up")
    prefix_chars: int = Field(default=4000, ge=0)
    suffix_chars: int = Field(default=1500, ge=0)


class WarmSettings(BaseModel):
    """Work that nobody waits for: reading repositories ahead of questions, compacting when idle."""

    automatic: bool = Field(default=True, description="warm repositories and compact them without being asked")
    on_battery: bool = Field(default=False, description="do so on battery power too")
    hours: str = Field(default="", description='quiet hours in local time, e.g. "22:00-07:00": nothing is done then')
    idle_compaction: float = Field(default=300, ge=0, description="seconds without requests until then; 0 = never")

    @field_validator("hours")
    @classmethod
    def _hours(cls, value: str) -> str:
        parts = value.split("-") if value else []
        if parts and len(parts) != 2:
            raise ValueError("two times with a hyphen between them, e.g. 22:00-07:00")
        for part in parts:
            time.fromisoformat(part.strip())
        return value


class DaemonSettings(BaseModel):
    """The daemon itself."""

    idle_exit: float = Field(default=0, ge=0, description="seconds without work until it ends; 0 = never")
    idle_unload: float = Field(default=0, ge=0, description="seconds without requests until the engine ends; 0 = never")
    max_workspaces: int = Field(default=8, ge=1)
    queue: int = Field(default=16, ge=1, description="requests that may wait for room in the engine")


class Settings(BaseSettings):
    """All settings. Nested names are joined by ``__`` in the environment: ``LAGUNA_ENGINE__PYTHON``."""

    model_config = SettingsConfigDict(
        env_prefix="LAGUNA_",
        env_nested_delimiter="__",
        extra="ignore",
        nested_model_default_partial_update=True,
    )

    profile: str | None = Field(default=None, description="name of the profile; unset = chosen from the GPUs")
    thinking: bool | None = Field(default=None, description="let the model reason first; unset = the profile's")
    engine: EngineSettings = EngineSettings()
    context: ContextSettings = ContextSettings()
    completion: CompletionSettings = CompletionSettings()
    daemon: DaemonSettings = DaemonSettings()
    warm: WarmSettings = WarmSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags > environment > the user's file. A ``.env`` in the working folder is never read."""
        return init_settings, env_settings, _UserFile(settings_cls, config_file())


class _UserFile(TomlConfigSettingsSource):
    """The user's file; an unknown name in it is an error, since a typo would be silently ignored otherwise."""

    def __init__(self, settings_cls: type[BaseSettings], path: Path) -> None:
        self.settings_cls = settings_cls  # the base class reads the file before it sets this
        super().__init__(settings_cls, path)

    def _read_file(self, file_path: Path | Traversable) -> dict[str, Any]:
        found = super()._read_file(file_path)
        unknown = sorted(set(found) - set(self.settings_cls.model_fields))
        if unknown:
            raise UsageError(
                f"Unknown setting{'s' if len(unknown) > 1 else ''} in {file_path}: {', '.join(unknown)}",
                "Remove or correct the name; docs/settings.md lists all of them.",
            )
        return found


def load_settings(**flags: Any) -> Settings:
    """Read the settings; raises UsageError that names the wrong value."""
    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"The setting {name} is wrong: {first['msg']}",
            f"Correct it in {config_file()}, the LAGUNA_* environment or the flags.",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{config_file()} is not valid TOML: {error}", "Correct the file.") from error
