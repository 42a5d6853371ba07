"""`laguna/context`: what is in the prompt of a root, and why a path is or is not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from laguna_daemon.lsp.errors import invalid_params
from laguna_daemon.lsp.ports import ServicePort
from laguna_daemon.lsp.roots import Locator
from laguna_daemon.schemas import ContextParams, ContextRequest, ContextResult, ContextWhy


class ContextAccount:
    """One client's questions about prompts."""

    def __init__(self, service: ServicePort, locator: Locator) -> None:
        self._service = service
        self._locator = locator

    async def context(self, params: ContextParams) -> dict[str, Any]:
        """A ContextResult, or a ContextWhy if a path was asked about; the repository is read if it was not yet."""
        path = None if params.why is None else self._path(params.why)
        about = path if path is not None and path.is_absolute() else None
        root = self._locator.named(params.root) if params.root is not None else await self._locator.root_of(about)
        if root is None:
            raise invalid_params("No workspace folder is open: name a root.")
        request = ContextRequest(root=str(root), why=None if path is None else _relative(path, root))
        found = await self._service.context(request)
        # A large repository has tens of thousands of files: not on the event loop.
        return await asyncio.to_thread(_plain, found, request.why is not None)

    def _path(self, named: str) -> Path:
        if "://" not in named:
            return Path(named)
        path = self._locator.path_of(named)
        if path is None:
            raise invalid_params(f"{named} names no file.")
        return path


def _relative(path: Path, root: Path) -> str:
    if not path.is_absolute():
        return path.as_posix()
    if not path.is_relative_to(root):
        raise invalid_params(f"{path} is not below {root}.")
    return path.relative_to(root).as_posix()


def _plain(found: dict[str, Any], why: bool) -> dict[str, Any]:
    model = ContextWhy if why else ContextResult
    return model.model_validate(found).model_dump(mode="json", by_alias=True)
