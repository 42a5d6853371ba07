"""Real Neovims of both supported series in front of one real daemon with the fake engine."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from support.daemon import COMMAND, FAKE_ENGINE, Home, repository, until
from support.engine_probe import Probe
from support.neovims import PLUGIN, NotToBeHad, binary
from support.nvim_screen import Nvim

HERE = Path(__file__).parent

LAMP = """\
class Lamp:
    def __init__(self):
        self.lit = False

    def on(self):
        self.lit = True
"""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "editors: drives a real editor (installs it if it is not there)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("editors")


@dataclass
class Desk:
    """A user of one's own: a home, its daemon, and what watches the engine."""

    home: Home
    probe: Probe

    def sessions(self) -> int:
        """Editors that are connected to the daemon."""
        transport = httpx.HTTPTransport(uds=str(self.home.runtime / "api.sock"))
        with httpx.Client(transport=transport, base_url="http://daemon") as http:
            return int(http.get("/v1/status").json()["sessions"])

    def idle(self) -> None:
        """Wait until no editor is connected and the engine does nothing."""
        until(lambda: self.sessions() == 0)
        until(lambda: self.probe.running() == 0)


@pytest.fixture(scope="session")
def plain_model(laguna_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that the CPU profile is made for, so that there is nothing to warn of."""
    folder = tmp_path_factory.mktemp("plain") / "model"
    shutil.copytree(laguna_model, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["LlamaForCausalLM"]}))
    return folder


@pytest.fixture(scope="session")
def desk(plain_model: Path, shared_cache: Path) -> Iterator[Desk]:
    """One daemon for all of these tests."""
    engine = [sys.executable, str(FAKE_ENGINE), "--decode-speed", "200"]
    home = Home.create(
        LAGUNA_PROFILE="cpu",
        LAGUNA_ENGINE__COMMAND=json.dumps(engine),
        LAGUNA_ENGINE__MODEL=str(plain_model),
        LAGUNA_CACHE_DIR=str(shared_cache),
    )
    try:
        assert home.run("start").returncode == 0, home.daemon_log()
        until(lambda: home.json("status", "--json")["engine"]["phase"] == "ready", 60)
        yield Desk(home, Probe(home.runtime / "engine.sock"))
    finally:
        home.remove()


@pytest.fixture(scope="session", params=["0.11", "0.12"])
def nvim_binary(request: pytest.FixtureRequest) -> Path:
    try:
        return binary(request.param)
    except NotToBeHad as error:
        pytest.skip(str(error))


@pytest.fixture
def lamp(tmp_path: Path) -> Path:
    """A file of a small repository whose path is not plain ASCII."""
    root = repository(tmp_path / "my lamp é", {"lamp.py": LAMP, "notes.md": "# Lamps\n"})
    return root / "lamp.py"


Edit = Callable[..., Nvim]


@pytest.fixture
def edit(desk: Desk, nvim_binary: Path, tmp_path: Path) -> Iterator[Edit]:
    """Opens a file in an editor that is connected; more Lua for its configuration may be given."""
    started: list[Nvim] = []

    def open_(file: Path, lua: str = "", *, connected: bool = True, **env: str) -> Nvim:
        init = tmp_path / "init.lua"
        init.write_text(lua + "\n" + (HERE / "init.lua").read_text())
        state = tmp_path / "state"
        folders = {name: str(state) for name in ("XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")}
        variables = {
            **desk.home.env,
            **folders,
            "LAGUNA_TEST_PLUGIN": str(PLUGIN),
            "LAGUNA_TEST_COMMAND": json.dumps([*COMMAND, "lsp"]),
            **env,
        }
        nvim = Nvim(nvim_binary, ["--clean", "-u", init, file], variables, file.parent)
        started.append(nvim)
        if connected:
            nvim.shows("Laguna: ready")
        return nvim

    yield open_
    for nvim in started:
        nvim.kill()
    desk.probe.answers()
    shutil.rmtree(tmp_path / "state", ignore_errors=True)
    desk.idle()
