"""gc and uninstall: what is listed, what goes, and what is never touched."""

from __future__ import annotations

import json
from pathlib import Path

from support.daemon import Home


def fill(home: Home) -> dict[str, Path]:
    """Folders as use leaves them, with things in them that are not ours."""
    data, state = home.folder / "data", home.folder / "state"
    made = {
        "engine": data / "engines" / "cpu-0123456789ab" / "lib.bin",
        "download": data / "downloads" / "cpu-0123456789ab" / "wheel.whl",
        "fetched": data / "models" / "fetched" / "model.safetensors",
        "theirs": data / "models" / "theirs" / "model.safetensors",
        "undo": state / "edits" / "journal.json",
        "stranger": state / "somebody-elses.txt",
        "outside": home.folder / "outside" / "precious.bin",
        "settings": home.folder / "config" / "laguna-daemon" / "config.toml",
    }
    for name, path in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"" if name == "settings" else b"x" * 8192)
    origin = {"repository": "poolside/fetched", "revision": "a" * 40}
    (made["fetched"].parent / "laguna-origin.json").write_text(json.dumps(origin))
    (data / "models" / "linked").symlink_to(made["outside"].parent)
    return made


def test_uninstall_only_lists_unless_told_to(home: Home) -> None:
    made = fill(home)
    done = home.run("uninstall")
    assert done.returncode == 0
    assert "Nothing was removed yet: laguna-daemon uninstall --yes" in done.stderr
    assert str(made["engine"].parents[1]) in done.stdout
    assert "a model that you put there yourself" in done.stdout
    assert all(path.exists() for path in made.values())


def test_uninstall_removes_what_is_ours_and_nothing_else(home: Home) -> None:
    home.json("start", "--wait", "--json")
    made = fill(home)
    found = home.json("uninstall", "--yes", "--json")
    assert found["removed"] and found["freed_bytes"] >= 4 * 8192
    left = {name for name, path in made.items() if path.exists()}
    assert left == {"theirs", "stranger", "outside", "settings"}
    assert home.daemon_pid() is None
    assert not home.runtime.exists()
    assert not (home.folder / "data" / "models" / "linked").is_symlink()
    kept = {item["path"]: item["kept"] for item in found["held"] if item["kept"]}
    assert kept[str(made["stranger"])] == "not ours"
    assert home.json("uninstall", "--yes", "--settings", "--json")["removed"]
    assert not made["settings"].exists()


def test_gc_frees_what_no_installation_needs(home: Home) -> None:
    made = fill(home)
    found = home.json("gc", "--json")
    assert found["freed_bytes"] >= 2 * 8192
    assert not made["download"].exists()
    assert not made["engine"].exists(), "an environment without its stamp was cut off"
    assert made["fetched"].exists() and made["theirs"].exists()
    assert str(made["fetched"].parent) in {item["path"] for item in found["held"]}
