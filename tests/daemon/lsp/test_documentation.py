"""docs/language-server.md says what the server does: its objects are read by the schemas, its methods are served."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from laguna_daemon.schemas import (
    ChatParams,
    ChatResult,
    ContextParams,
    ContextResult,
    ContextWhy,
    ConversationsParams,
    ConversationsResult,
    EditorSettings,
    EditorStatus,
    WarmParams,
    WarmResult,
    Wire,
)

TEXT = (Path(__file__).parents[3] / "docs" / "language-server.md").read_text()
OBJECTS: dict[str, type[Wire]] = {
    "settings": EditorSettings,
    "chat-params": ChatParams,
    "chat-result": ChatResult,
    "conversations-params": ConversationsParams,
    "conversations-result": ConversationsResult,
    "context-params": ContextParams,
    "context-result": ContextResult,
    "context-why": ContextWhy,
    "status": EditorStatus,
    "warm-params": WarmParams,
    "warm-result": WarmResult,
}


def example(name: str) -> dict[str, Any]:
    (body,) = re.findall(rf"```json {name}\n(.*?)```", TEXT, re.DOTALL)
    return json.loads(body)


def test_every_example_has_a_schema():
    assert re.findall(r"```json (\S+)", TEXT) == list(OBJECTS)


@pytest.mark.parametrize("name", OBJECTS)
def test_examples_hold_every_field_under_its_name(name):
    found = example(name)
    schema = OBJECTS[name]
    again = schema.model_validate(found).model_dump(mode="json", by_alias=True)
    assert again == found


def test_defaults_of_the_settings():
    assert EditorSettings().model_dump(by_alias=True) == example("settings")


async def test_the_methods_are_served(connect, stand):
    client = await connect()
    await client.initialize()
    methods = set(re.findall(r"^\| `(laguna/\w+)`", TEXT, re.MULTILINE))
    (session,) = stand.listener.sessions.values()
    served = {method for method in session.methods if method.startswith("laguna/")}
    assert served | {"laguna/didChangeStatus"} == methods


async def test_the_commands_are_served(connect):
    client = await connect()
    found = await client.initialize()
    assert found["executeCommandProvider"]["commands"] == re.findall(r"^\| `(laguna\.\w+)`", TEXT, re.MULTILINE)
