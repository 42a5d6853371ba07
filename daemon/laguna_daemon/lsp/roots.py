"""Where a client's documents are: their files and the roots to serve them from."""

import asyncio
from pathlib import Path

from laguna_daemon.lsp.errors import invalid_params
from laguna_daemon.lsp.text.sync import Sync
from laguna_daemon.lsp.text.uris import to_path
from laguna_daemon.lsp.workspaces import Workspaces


class Locator:
    """Finds files and roots for one client's requests."""

    def __init__(self, sync: Sync, workspaces: Workspaces) -> None:
        self._sync = sync
        self._workspaces = workspaces

    def path_of(self, uri: str) -> Path | None:
        """The real path of a URI's file, None if it names none on this machine."""
        return self._sync.path_of(uri)

    async def root_of(self, path: Path | None) -> Path | None:
        """The root that contains `path`; see Workspaces.root_of."""
        if path is None:
            return self._workspaces.root_of(None)
        folder = self._workspaces.containing(path)
        return folder if folder is not None else await asyncio.to_thread(self._workspaces.root_of, path)

    def named(self, root: str) -> Path:
        """A root that the client names by URI or absolute path; raises InvalidParams."""
        path = to_path(root) if "://" in root else Path(root)
        if path is None or not path.is_absolute():
            raise invalid_params("The root must be a file: URI or an absolute path.")
        return path
