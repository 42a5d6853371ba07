"""The product itself on one GPU: the daemon and the Laguna profile answer a 190,002-token prompt and survive kill -9.

Everything goes through the command line, as a user would: start, ask (cold, warm, after an edit), doctor, kill -9 of
the daemon, start again, kill -9 of the engine. One line of JSON a step, written as it happens.

usage: product.py --work FOLDER --out FOLDER [--engine-python PYTHON] [--engine-path PATHS] [--tokens 190002]
       rehearsal: --cpu-model FOLDER --engine-python PYTHON --tokens 3000
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rig

QUESTION = "Which module checks a token, and what does it refuse?"
OTHER = "Where is a response written to a path?"
OUTPUT = 32
CLEAN_MIB = 600  # what a GPU without any program of ours may show above its state at the beginning


class Run:
    """One run: the home, its repository, and what was written down."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.record = rig.Record(options.out / "product.jsonl")
        self.home = rig.make_home(
            options.work / "home",
            options.engine_python,
            options.engine_path,
            options.cpu_model,
            f"\n[cache]\noffload = {options.offload}\n{options.flags}",
        )
        self.repo = options.work / "repository"
        self.at_rest = _at_rest(options.work / "gpu-at-rest")

    def prepare(self) -> None:
        """Start the engine and make the repository meanwhile."""
        ruler = rig.Ruler(self.home)
        self.record("launch", argv=ruler.launch.argv, profile=rig.PROFILE, gpu_mib=self.at_rest)
        self.begin = time.perf_counter()
        self.home.run("start")
        began = time.perf_counter()
        tokens = rig.repository(self.repo, self.options.tokens, QUESTION, ruler)
        self.record("repository", tokens=tokens, s=round(time.perf_counter() - began, 1))

    def start(self, row: str, began: float | None = None) -> None:
        began = began or time.perf_counter()
        status = self.home.json("start", "--wait", "--json")
        self.record(row, s=round(time.perf_counter() - began, 1), gpu_mib=rig.gpu_memory(), status=status)
        if status.get("engine", {}).get("phase") != "ready":
            raise SystemExit(f"the engine does not serve: {status}")

    def ask(self, row: str, question: str, *more: str) -> None:
        began = time.perf_counter()
        answer = self.home.json(
            *("ask", question, "--repo", str(self.repo), "--json", "--max-tokens", str(OUTPUT), "--temperature", "0"),
            *more,
            cwd=self.repo,
        )
        wall = round(time.perf_counter() - began, 2)
        self.record(row, wall_s=wall, usage=answer.get("usage"), **_trouble(answer))

    def edit(self) -> None:
        path = sorted(self.repo.glob("pkg_*/*.py"))[0]
        path.write_text(path.read_text().replace("raise ValueError(", "raise TypeError(", 1))
        self.record("edited", path=path.relative_to(self.repo))

    def doctor(self) -> None:
        self.record("doctor", found=self.home.json("doctor", "--json"))

    def kill(self, row: str, pid: Callable[[dict[str, Any]], int | None]) -> None:
        """SIGKILL one process of ours; seconds until all that hung on it, and the memory of the GPU, are gone."""
        status = self.home.json("status", "--json")
        daemon = int(status["pid"])
        engine = rig.family(int(status["engine"]["pid"]))
        watched = engine if pid(status) != daemon else rig.family(daemon)
        held = rig.gpu_memory()
        victim = pid(status)
        assert victim is not None
        began = time.perf_counter()
        os.kill(victim, signal.SIGKILL)
        gone = _until(lambda: not rig.alive(watched), 30)
        clean = _until(self._clean, 30)
        self.record(
            row,
            watched=len(watched),
            processes_gone_s=gone and round(gone - began, 2),
            gpu_clean_s=clean and round(clean - began, 2),
            gpu_mib_before=held,
            gpu_mib_after=rig.gpu_memory(),
            left=rig.alive(watched),
        )

    def end(self) -> None:
        done = self.home.run("stop")
        self.record("stop", exit_code=done.returncode, gpu_mib=rig.gpu_memory())
        for name in ("engine.log", "daemon.log"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copy(self.home.logs / name, self.options.out / name)
        if shutil.which("nvidia-smi"):
            text = subprocess.run(["nvidia-smi"], capture_output=True, text=True, check=False).stdout
            (self.options.out / "nvidia-smi.txt").write_text(text)

    def _clean(self) -> bool:
        now = rig.gpu_memory()
        return now is None or self.at_rest is None or now <= self.at_rest + CLEAN_MIB


def _at_rest(kept: Path) -> int | None:
    """What the GPU held before anything of ours ran; kept for a later call that finds our engine running."""
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        found = rig.gpu_memory()
        kept.write_text("" if found is None else str(found))
    text = kept.read_text()
    return int(text) if text else None


def _trouble(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: answer[name] for name in ("exit_code", "stderr", "error") if name in answer}


def _until(wanted: Callable[[], bool], seconds: float) -> float | None:
    """The time at which it became true; None if it did not."""
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        if wanted():
            return time.perf_counter()
        time.sleep(0.1)
    return None


def first(run: Run) -> None:
    """Everything that leaves the daemon running."""
    run.prepare()
    run.start("ready", run.begin)
    run.ask("cold", QUESTION)
    run.ask("warm, same question", QUESTION)
    run.ask("warm, other question", OTHER)
    run.edit()
    run.ask("after one edit", OTHER)
    run.ask("once more", QUESTION)
    run.doctor()


def last(run: Run) -> None:
    """kill -9, and a start after it."""
    run.kill("kill -9 of the daemon", lambda status: int(status["pid"]))
    run.start("ready again")
    run.ask("after the restart, short", QUESTION, "--no-context")
    if not run.options.short:
        run.ask("after the restart, cold", QUESTION)
    run.kill("kill -9 of the engine", lambda status: int(status["engine"]["pid"]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=Path, required=True, help="a new folder with a short path")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--engine-python", type=Path, default=Path(sys.executable), help="Python that has torch")
    parser.add_argument("--engine-path", default="", help="PYTHONPATH of the engine")
    parser.add_argument("--tokens", type=int, default=190_002)
    parser.add_argument("--cpu-model", type=Path, help="rehearse on the CPU engine with this model")
    parser.add_argument("--offload", default="false", help='false, "auto" in quotes, or GiB of host memory')
    parser.add_argument("--flags", default="", help="more TOML for the profile")
    parser.add_argument("--short", action="store_true", help="leave out the second cold question")
    parser.add_argument("--steps", default="first,last", help="of first, last: another benchmark may run between them")
    parser.add_argument("--keep", action="store_true", help="leave the daemon running")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    run = Run(options)
    # A time limit ends the run this way: the logs are wanted all the same, and no engine may be left.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("out of time"))
    try:
        for part in options.steps.split(","):
            {"first": first, "last": last}[part](run)
    finally:
        if not options.keep:
            run.end()


if __name__ == "__main__":
    main()
