"""The real vLLM on the CPU, started once for all tests that ask for it.

Its pool is small (23 blocks of 128 tokens), so that a test can overflow it cheaply.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.engine_home import engine_environment
from support.hosts import HostProcess
from support.trace import FLAGS


def real_options() -> dict[str, Any]:
    """What a HostProcess needs for the real engine: LAGUNA_TEST_ENGINE_PYTHON's, or an installed one."""
    found = engine_environment()
    if "LAGUNA_ENGINE__PYTHON" in found:
        return {"python": found["LAGUNA_ENGINE__PYTHON"], "model": found["LAGUNA_ENGINE__MODEL"]}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in found.items():
            patch.setenv(name, value)
        from laguna_daemon.engine.install import installed
        from laguna_daemon.engine.profile import load_profile
        from laguna_daemon.paths import data_dir

        home = installed("cpu")
        assert home is not None, "the engine was not installed"
        return {"python": str(home.python), "model": str(data_dir() / "models" / load_profile("cpu").model.name)}


@pytest.fixture(scope="session")
def real_engine() -> Iterator[HostProcess]:
    """A host with the real engine, ready."""
    host = HostProcess(**real_options(), args=FLAGS, env={"VLLM_SERVER_DEV_MODE": "1"})
    host.await_state("ready", timeout=600)
    yield host
    host.close()
