"""What runs of the whole product on one machine share: a home, model folders, a profile, a repository of N tokens.

The GPU profile is the product's own for four 24 GB cards, cut to one GPU: the same architecture, draft, KV pool and
batch, dummy weights; the context is as long as the pool holds, so that a prompt of 190,000 tokens leaves room. With
`cpu_model` everything runs on the CPU engine and a small model instead, as a rehearsal.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import laguna_config
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from laguna_context import frames
from laguna_context.workspace import Workspace
from laguna_daemon.config import load_settings
from laguna_daemon.engine.launch import build_launch
from laguna_daemon.engine.profile import load_profile
from laguna_daemon.service.materials import Materials
from support.laguna_tokenizer import write_model

HERE = Path(__file__).resolve().parent
PROFILE = "one-gpu"
POOL_BYTES = int(7.52 * 2**30)  # what four 24 GB cards leave for KV memory, with the draft
GPU_PROFILE = """\
extends = "laguna-s-2.1-4x24gb"
summary = "the four-card profile cut to one GPU, dummy weights"

[gpus]
count = 1
memory_gib = 80

[flags]
tensor-parallel-size = 1
max-model-len = 212992
disable-custom-all-reduce = false
kv-cache-memory-bytes = {pool}
load-format = "dummy"

[budget]
context = 212992
output = 512
task = 256
overlay = {overlay}
"""
CPU_PROFILE = 'extends = "cpu"\nsummary = "rehearsal"\n'
OVERLAY = 1000  # tokens; changes may also fill what the snapshot leaves free
FILE_WORDS = 900
NOUNS = ("request", "response", "document", "token", "prefix", "cache", "error", "result", "value", "path", "line")
VERBS = ("read", "write", "open", "close", "parse", "check", "build", "merge", "split", "count", "find", "load", "send")
PADDING = "padding.txt"
KEPT = ("PATH", "HOME", "LD_LIBRARY_PATH")
KEPT_PREFIXES = ("CUDA_", "NVIDIA_", "NCCL_")


class Record:
    """A file of JSON lines, each written at once, with the seconds since the start."""

    def __init__(self, path: Path) -> None:
        self._began = time.perf_counter()
        self._file = path.open("a")

    def __call__(self, row: str, **values: Any) -> None:
        line = json.dumps({"row": row, "at": round(time.perf_counter() - self._began, 1), **values}, default=str)
        print(line[:600], flush=True)
        self._file.write(line + "\n")
        self._file.flush()


@dataclass
class Home:
    """The folders of one user below `folder` (a short path: sockets), and the product's commands run as that user."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        return self.folder / "config" / "laguna-daemon"

    @property
    def logs(self) -> Path:
        return self.folder / "state" / "logs"

    def run(self, *args: str, cwd: Path | None = None, timeout: float = 560) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "laguna_daemon.cli", *args]
        return subprocess.run(
            command,
            cwd=cwd or self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def json(self, *args: str, **more: Any) -> dict[str, Any]:
        """A command's JSON; what it said instead, and its exit code, where it failed."""
        done = self.run(*args, **more)
        try:
            found: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            return {"exit_code": done.returncode, "stderr": done.stderr[-2000:]}
        return found if done.returncode == 0 else {**found, "exit_code": done.returncode}


def make_home(
    folder: Path,
    engine_python: Path,
    engine_path: str = "",
    cpu_model: Path | None = None,
    flags: str = "",
    speed: float | None = None,
    overlay: int = OVERLAY,
) -> Home:
    """A home whose daemon starts the profile; `engine_path` is the engine's PYTHONPATH, `flags` more TOML of it;
    `speed`: no GPU, but the engine that only schedules, so much faster than the GPU."""
    folder.mkdir(parents=True, exist_ok=True)
    if cpu_model is None:
        target, draft = model_folders(folder / "models")
        profile = GPU_PROFILE.format(pool=POOL_BYTES, overlay=overlay)
    else:
        target, draft, profile = cpu_model, cpu_model, CPU_PROFILE
    engine_env = {
        "PYTHONPATH": engine_path,
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
        # Its kernels are compiled at run time, which a machine without network cannot do.
        "VLLM_USE_FLASHINFER_SAMPLER": "0",
    }
    home = Home(
        folder,
        {
            **{name: value for name, value in os.environ.items() if name in KEPT or name.startswith(KEPT_PREFIXES)},
            "LANG": "C.UTF-8",
            **{f"LAGUNA_{name.upper()}_DIR": str(folder / name) for name in ("runtime", "data", "cache", "state")},
            "XDG_CONFIG_HOME": str(folder / "config"),
            "LAGUNA_PROFILE": PROFILE,
            "LAGUNA_ENGINE__PYTHON": str(engine_python),
            "LAGUNA_ENGINE__MODEL": str(target),
            "LAGUNA_ENGINE__DRAFT": str(draft),
            "LAGUNA_ENGINE__ENV": json.dumps({} if cpu_model else engine_env),
        },
    )
    if speed is not None:
        home.env["LAGUNA_ENGINE__COMMAND"] = json.dumps([str(engine_python), str(HERE / "scheduled_engine.py")])
        home.env["LAGUNA_ENGINE__ENV"] = json.dumps(
            {"PYTHONPATH": f"{engine_path}:{HERE}", "SCHEDULED_ENGINE_SPEED": str(speed)}
        )
    (home.config / "profiles").mkdir(parents=True, exist_ok=True)
    (home.config / "profiles" / f"{PROFILE}.toml").write_text(profile + flags)
    return home


def model_folders(folder: Path) -> tuple[Path, Path]:
    """Target and draft: full-size configs and a tokenizer of Laguna's shape, no weights."""
    target, draft = laguna_config.write(folder)
    write_model(target)
    config = json.loads((target / "tokenizer_config.json").read_text())
    # Without a class the engine would look one up by the model's type.
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    (target / "tokenizer_config.json").write_text(json.dumps(config))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(target / name, draft / name)
    return target, draft


class Ruler:
    """Measures prompts as the home's daemon will build them, with caches of its own."""

    def __init__(self, home: Home) -> None:
        os.environ.update({name: home.env[name] for name in home.env if name.startswith(("LAGUNA_", "XDG_"))})
        self.profile = load_profile(PROFILE)
        self.launch = build_launch(self.profile, load_settings(), None, home.folder / "unused.sock")
        self.materials = Materials(self.launch)
        self._cache = home.folder / "ruler"

    def tokens(self, text: str) -> int:
        return len(self.materials.tokenizer.encode(text))

    def prompt_tokens(self, root: Path, question: str) -> int:
        """Tokens of the prompt for a first question; a new snapshot every time."""
        shutil.rmtree(self._cache, ignore_errors=True)
        materials = self.materials
        space = Workspace.open(
            root,
            tokenizer=materials.tokenizer,
            template=materials.template,
            budget=materials.budget,
            cache_dir=self._cache,
        )
        try:
            return len(space.prompt(question, thinking=self.profile.thinking.default).ids)
        finally:
            space.close()


def repository(root: Path, tokens: int, question: str, ruler: Ruler, seed: int = 1) -> int:
    """Generated modules whose prompt for `question` has `tokens` tokens, in git if there is one; returns its tokens."""
    chance = random.Random(seed)
    root.mkdir(parents=True)
    (root / PADDING).write_text("the\n")
    git(root, "init", "-q", "-b", "main")
    room, number = tokens - 1500, 0
    while room > 0:
        text = module(chance, number, min(FILE_WORDS, max(60, room // 5)))
        path = f"pkg_{number // 20:02}/module_{number:04}.py"
        cost = ruler.tokens(frames.document(path, text).text)
        if cost > room:
            break
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
        room, number = room - cost, number + 1
    found = 0
    for _ in range(4):
        found = ruler.prompt_tokens(root, question)
        if found == tokens:
            break
        _pad(root, tokens - found, ruler)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "generated")
    return found


def _pad(root: Path, missing: int, ruler: Ruler) -> None:
    """Rewrite the padding so that its frame has `missing` tokens more: its id is a hash, so this is a search."""

    def cost(text: str) -> int:
        return ruler.tokens(frames.document(PADDING, text).text)

    text = (root / PADDING).read_text()
    wanted = cost(text) + missing
    words = max(1, wanted - cost("the\n"))
    for attempt in range(2000):
        text = "the" + " the" * words + f" {'abcdefghij'[attempt % 10]}" * (attempt // 10 % 10) + "\n"
        difference = wanted - cost(text)
        if difference == 0:
            break
        words = max(0, words + (difference if abs(difference) > 8 else (attempt % 3) - 1))
    (root / PADDING).write_text(text)


def module(chance: random.Random, number: int, words: int) -> str:
    """Something that looks like a Python module of about `words` words."""
    lines = [f'"""Module {number}."""', ""]
    left = words
    while left > 0:
        verb, noun, other = chance.choice(VERBS), chance.choice(NOUNS), chance.choice(NOUNS)
        size = chance.randrange(10, 1000)
        lines += [
            f"def {verb}_{noun}_{chance.randrange(10_000)}({noun}, {other}):",
            f'    """{verb.capitalize()} the {noun} of a {other}; at most {size}."""',
            f"    if len({noun}) > {size}:",
            f"        raise ValueError({noun!r})",
            f"    return [{other} for {other} in {noun} if {other} != {chance.randrange(100)}]",
            "",
            "",
        ]
        left -= 30
    return "\n".join(lines)


def git(root: Path, *args: str) -> None:
    if shutil.which("git") is None:
        return
    who = ["-c", "user.name=Bench", "-c", "user.email=bench@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *args], cwd=root, check=True, capture_output=True)


def gpu_memory() -> int | None:
    """MiB in use on the first GPU; None where there is none to ask."""
    if shutil.which("nvidia-smi") is None:
        return None
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"]
    done = subprocess.run(query, capture_output=True, text=True, check=False, timeout=30)
    return int(done.stdout.split()[0]) if done.returncode == 0 and done.stdout.split() else None


def family(pid: int) -> list[psutil.Process]:
    """The process and everything below it now."""
    try:
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def alive(processes: list[psutil.Process]) -> list[str]:
    """Those that still run, as `pid name`."""
    found = []
    for process in processes:
        try:
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {process.name()}")
        except psutil.NoSuchProcess:
            continue
    return found
