"""The prompt of a completion: what a keystroke changes in it, its two forms, and what never gets in."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laguna_context.prompt import Prompt
from laguna_daemon.completion import window
from laguna_daemon.config import CompletionSettings, Settings
from laguna_daemon.engine.launch import build_launch
from laguna_daemon.engine.profile import FimSection, load_profile
from laguna_daemon.errors import OverBudget
from laguna_daemon.lsp.text.positions import split_lines
from laguna_daemon.residency.prefixes import common_prefix
from laguna_daemon.schemas import CompleteRequest, Snippet
from laguna_daemon.service.infill import build, withheld
from laguna_daemon.service.materials import Materials

SETTINGS = CompletionSettings()
LINES = [f"    value_{number} = compute({number}) + other[{number % 7}]\n" for number in range(3000)]
BLOCK = 16  # tokens of a cache block on a GPU


def materials(model: Path, **changes: Any) -> Materials:
    settings = Settings(engine={"command": [sys.executable, "-c", "pass"], "model": model})
    profile = load_profile("cpu").model_copy(update={"fim": None, **changes})
    return Materials(build_launch(profile, settings, None, Path("/nowhere/engine.sock")))


@pytest.fixture(scope="module")
def words(laguna_model: Path) -> Materials:
    return materials(laguna_model)


def request(typed: str, line: int = 1500, **more: Any) -> CompleteRequest:
    lines = split_lines("".join(LINES[:line]) + typed + "\n" + "".join(LINES[line:]))
    at = len(lines[line]) - 1
    return CompleteRequest(
        path="src/values.py",
        language="python",
        prefix=window.lines_before(lines, line, at, 24_000),
        suffix=window.lines_after(lines, line, at, 8000),
        **more,
    )


def text(found: Materials, ids: Any) -> str:
    return found.tokenizer.decode(ids).decode()


def test_typing_computes_the_last_block_anew_and_no_more(words):
    typed = "    result = some_function(value_1, value_2, other=value_3).then(next_one)"
    prompts = [build(words, request(typed[:end]), SETTINGS, None) for end in range(4, len(typed))]
    tail = words.template.tail(False).size
    for before, after in pairwise(prompts):
        assert common_prefix(before, after) >= len(before) - tail - BLOCK
    # Over many lines the anchor moves now and then; what is computed anew on average stays small.
    prompts = [build(words, request("    x = 1", line), SETTINGS, None) for line in range(1500, 1520)]
    assert len({len(prompt) // 400 for prompt in prompts}) <= 3


def test_the_suffix_stands_before_the_prefix_and_what_is_stable_before_both(words):
    snippets = [Snippet(path="lamp.py", text="class Lamp:"), Snippet(path="big.py", text="x" * 100_000)]
    found = text(words, build(words, request("    x = ", snippets=snippets), SETTINGS, None))
    assert (
        found.index("class Lamp:") < found.index(LINES[1500]) < found.index(LINES[1499]) < found.index("x = <CURSOR>")
    )
    assert "xxxxxx" not in found  # too long, so left out whole
    assert found.index("src/values.py") < found.index(LINES[1500])


def test_secrets_stay_out(words):
    key = "AKIA" + "Q3EGRZ7XUB2MNV5T"
    asked = CompleteRequest(path="a.py", prefix=f'aws_access_key_id = "{key}"\nx = ', suffix=f'\ny = "{key}"\n')
    found = text(words, build(words, asked, SETTINGS, None))
    assert key not in found and "[redacted" in found


def test_a_window_that_does_not_fit_is_halved(laguna_model, words):
    small = materials(laguna_model, budget=words.launch.profile.budget.model_copy(update={"context": 2048}))
    wide = CompletionSettings(prefix_chars=20_000, suffix_chars=8000)
    assert len(build(small, request("    x = "), wide, None)) <= small.budget.prompt < 2048
    none = materials(
        laguna_model, budget=words.launch.profile.budget.model_copy(update={"context": 256, "output": 200})
    )
    with pytest.raises(OverBudget):
        build(none, request("    x = "), wide, None)


def test_infill_by_the_tokens_of_the_profile(laguna_model, words):
    controls = [control for control in words.tokenizer.controls if words.tokenizer.special(control) is not None][:3]
    form = f"{controls[0]}{{suffix}}{controls[1]}{{prefix}}{controls[2]}"
    found = materials(laguna_model, fim=FimSection(form=form))
    asked = CompleteRequest(
        path="a.lua",
        language="lua",
        prefix=f"x = {controls[0]}",
        suffix="\nend",
        snippets=[Snippet(path="b.lua", text="y = 1")],
    )
    ids = build(found, asked, SETTINGS, None)
    special = [words.tokenizer.special(control) for control in controls]
    assert [int(index) for index in ids if int(index) in special] == special  # the text's own stay ordinary text
    assert (
        text(found, ids)
        == f"{controls[0]}\nend{controls[1]}-- b.lua\ny = 1\n\n-- a.lua\nx = {controls[0]}{controls[2]}"
    )


def test_the_default_without_gpus_continues_the_text(laguna_model, words):
    found = materials(laguna_model, fim=load_profile("cpu").fim)
    asked = request("    x = ", snippets=[Snippet(path="lamp.py", text="class Lamp:")])
    said = text(found, build(found, asked, SETTINGS, None))
    assert said.startswith("# lamp.py\nclass Lamp:\n\n# src/values.py\n")
    assert said.endswith(f"{LINES[1499]}    x = ") and LINES[1500] not in said


@pytest.mark.parametrize(
    ("prefix", "ends", "kept"),
    [
        ("def f():\n    ", "def f():", "\n    "),
        ("def f():\n\n\t", "def f():", "\n\n\t"),
        ("x = 1  \n", "x = 1", "  \n"),
        ("x = ", "x = ", ""),
        ("    ", "a.py\n    ", ""),
        ("\n    ", "a.py\n\n    ", ""),
    ],
)
def test_a_continuation_begins_behind_the_last_word(laguna_model, prefix, ends, kept):
    found = materials(laguna_model, fim=load_profile("cpu").fim)
    asked = CompleteRequest(path="a.py", language="python", prefix=prefix, suffix="")
    assert text(found, build(found, asked, SETTINGS, None)).endswith(ends)
    assert withheld(found.launch.profile.fim, asked) == kept
    assert withheld(FimSection(form="<a>{prefix}<b>"), asked) == withheld(None, asked) == ""


def test_a_form_whose_tokens_are_missing_is_asked_in_words(laguna_model, caplog):
    found = materials(laguna_model, fim=FimSection(form="<no_such_token>{prefix}"))
    assert "<CURSOR>" in text(found, build(found, request("x"), SETTINGS, None))
    assert "<no_such_token>" in caplog.text


@pytest.mark.parametrize("form", ["", "{suffix}", "{prefix}{prefix}", "{prefix}{suffix}{suffix}"])
def test_forms_that_are_none(form):
    with pytest.raises(ValueError, match="prefix"):
        FimSection(form=form)


def test_behind_a_repository(words):
    ids = np.arange(50, dtype=np.uint32)
    last = Prompt(
        ids=ids,
        prefix_tokens=30,
        overlay_tokens=10,
        task_tokens=10,
        snapshot="s",
        overlay_seq=1,
        identity="i",
        buffers_used=(),
        notes=(),
        documents=(),
    )
    snippets = [Snippet(path="lamp.py", text="class Lamp:")]
    found = build(words, request("    x = ", snippets=snippets), SETTINGS, last)
    assert found[:40].tolist() == list(range(40))
    said = text(words, found[40:])
    assert said.startswith("<task>\n") and "x = <CURSOR>\n</task>" in said
    assert "class Lamp:" not in said  # the repository is there already
