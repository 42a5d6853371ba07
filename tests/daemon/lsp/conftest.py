"""A real listener on a real socket in front of a scripted service."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from laguna_daemon.lsp.listener import Listener
from support.fake_service import FakeService
from support.lsp_client import LspClient


@dataclass
class Stand:
    """A running language server."""

    service: FakeService
    listener: Listener
    path: Path


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    # Not under tmp_path: a socket's path must stay short.
    folder = Path(tempfile.mkdtemp(prefix="lsp"))
    service = FakeService()
    listener = Listener(service, folder / "lsp.sock")
    await listener.start()
    yield Stand(service, listener, folder / "lsp.sock")
    await listener.aclose()
    shutil.rmtree(folder)


Connect = Callable[[], Awaitable[LspClient]]


@pytest.fixture
async def connect(stand: Stand) -> AsyncIterator[Connect]:
    clients: list[LspClient] = []

    async def make() -> LspClient:
        clients.append(await LspClient.connect(stand.path))
        return clients[-1]

    yield make
    for client in clients:
        await client.close()
