"""A process that hosts an engine, so that tests can kill the host: `python engine_host.py '{"runtime": ..., ...}'`.

It prints one JSON object per engine state, and ends the engine on SIGTERM. The object of its argument holds `runtime`,
`model` and `profile`, and what settings.engine shall hold.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any


async def host(options: dict[str, Any]) -> None:
    runtime = Path(options.pop("runtime"))
    for name in ("RUNTIME", "DATA", "CACHE", "STATE"):
        os.environ[f"LAGUNA_{name}_DIR"] = str(runtime)
    from laguna_daemon.config import EngineSettings, Settings
    from laguna_daemon.engine.launch import build_launch
    from laguna_daemon.engine.profile import load_profile
    from laguna_daemon.engine.supervisor import EngineHost

    profile = load_profile(options.pop("profile", "cpu"))
    settings = Settings(engine=EngineSettings(**options))
    engine = EngineHost(
        build_launch(profile, settings, None, runtime / "engine.sock"),
        runtime,
        runtime / "engine.log",
        check_every=0.2,
        first_pause=0.2,
    )
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    await engine.start()
    reporting = asyncio.create_task(_report(engine))
    await stopping.wait()
    await engine.stop()
    await asyncio.sleep(0.05)
    reporting.cancel()


async def _report(engine: Any) -> None:
    async for state in engine.watch():
        print(json.dumps(asdict(state)), flush=True)


if __name__ == "__main__":
    asyncio.run(host(json.loads(sys.argv[1])))
