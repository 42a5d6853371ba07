"""A user's home for the extension's tests: two repositories, a fake engine of known answers, and all that goes with it.

Prints one JSON object, keeps the home until standard input ends, then stops the daemon and takes everything away.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[4] / "tests"))

from support.daemon import FAKE_ENGINE, Home, repository
from support.laguna_tokenizer import write_model

SHAPE = {
    "architectures": ["LlamaForCausalLM"],  # what the profile cpu is made for; another one is warned of
    "max_position_embeddings": 262_144,
    "vocab_size": 100_352,
    "eos_token_id": [2, 24],
    "num_hidden_layers": 12,
    "num_key_value_heads": 8,
    "num_attention_heads": 48,
    "hidden_size": 3072,
    "head_dim": 128,
}
LAMP = '''\
"""A lamp that can be dimmed."""


class Lamp:
    def __init__(self, watts: float) -> None:
        self.watts = watts
        self.level = 0.0

    def on(self) -> None:
        self.level = 1.0

    def dim(self, level: float) -> None:
        self.level = min(1.0, max(0.0, level))
'''
OVEN = '''\
"""An oven."""


def preheat(degrees: int) -> str:
    return f"preheating to {degrees}"
'''


def main() -> None:
    home = Home.create(LAGUNA_PROFILE="cpu")
    model = write_model(home.folder / "model")
    (model / "config.json").write_text(json.dumps(SHAPE))
    command = [sys.executable, str(FAKE_ENGINE), "--decode-speed", "400"]
    home.env |= {"LAGUNA_ENGINE__COMMAND": json.dumps(command), "LAGUNA_ENGINE__MODEL": str(model)}
    # Asked in words, so that the rules for answers can tell suggestions from questions.
    profile = home.folder / "config" / "laguna-daemon" / "profiles" / "cpu.toml"
    profile.parent.mkdir(parents=True)
    profile.write_text("fim = false\n")
    files = {"lamp.py": LAMP, "README.md": "# Lamp\n", "docs/notes on dimming.md": "Slowly.\n"}
    lamp = repository(home.folder / "lamp", files)
    oven = repository(home.folder / "my oven é#1", {"oven.py": OVEN, "README.md": "# Oven\n"})
    folders = [{"path": str(lamp)}, {"path": str(oven)}]
    workspace = home.folder / "two.code-workspace"
    workspace.write_text(json.dumps({"folders": folders}))
    program = Path(sys.executable).parent / "laguna-daemon"
    tools = home.folder / ".local" / "bin"  # where pipx puts programs: the extension has to find it there
    tools.mkdir(parents=True)
    (tools / program.name).symlink_to(program)
    said = {
        "env": home.env,
        "folder": str(home.folder),
        "roots": [str(lamp), str(oven)],
        "workspace": str(workspace),
        "program": str(program),
    }
    print(json.dumps(said), flush=True)
    try:
        sys.stdin.read()
    finally:
        home.remove()


if __name__ == "__main__":
    main()
