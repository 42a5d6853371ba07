"""The chat template, cut around sentinels, renders as the model's own template does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jinja2
import numpy as np
import pytest

from laguna_context.template import CLOSING, OPENING, BrokenTemplate, ChatTemplate, load_template
from laguna_context.tokens import Tokenizer
from laguna_context.workspace import Workspace
from support.laguna_tokenizer import CONTROLS, TEMPLATE

Opener = Callable[..., Workspace]

CHATML = (
    "{% for m in messages %}<system>{{ m.role }}\n{{ m.content | trim }}</system>\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def with_template(folder: Path, model: Path, source: str, **config: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").symlink_to(model / "tokenizer.json")
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": source, **config}))
    return folder


@pytest.mark.parametrize("thinking", [False, True])
def test_one_turn_is_the_template_of_the_model(template: ChatTemplate, tokenizer: Tokenizer, thinking: bool) -> None:
    content = OPENING + '<document path="a" id="b">\nx = 1\n</document b>\n<task>\nWhat?\n' + CLOSING
    head, _, _ = template.pieces[thinking].head.partition("<user>")
    system = head.split("<system>")[1].split("</system>")[0]
    messages = [{"role": "system", "content": system}, {"role": "user", "content": content}]
    whole = jinja2.Template(TEMPLATE, trim_blocks=True, lstrip_blocks=True).render(
        messages=messages, bos_token=CONTROLS[2], add_generation_prompt=True, enable_thinking=thinking
    )
    body = content.removeprefix(OPENING).removesuffix(CLOSING)
    parts = [template.open_first(thinking), tokenizer.encode(body), template.tail(thinking)]
    assert np.concatenate(parts).tolist() == tokenizer.encode_controlled(whole).tolist()
    assert template.render(content, thinking) == whole


def test_thinking_changes_the_tail_only(template: ChatTemplate) -> None:
    assert not template.thinking_differs
    assert template.open_first(True).tolist() == template.open_first(False).tolist()
    assert template.tail(True)[-1] == 18
    assert template.tail(False)[-1] == 19


def test_a_template_whose_head_depends_on_thinking(laguna_model: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    source = "{% if enable_thinking %}<think>{% endif %}" + CHATML
    found = load_template(with_template(tmp_path / "m", laguna_model, source), tokenizer)
    assert found.thinking_differs
    assert found.open_first(True)[0] == 18


def test_a_turn_is_closed_as_the_template_closes_it(template: ChatTemplate, tokenizer: Tokenizer) -> None:
    again = template.open_next()
    assert again[0] == 24
    assert tokenizer.decode(again).decode().startswith("</assistant>\n<user>")
    assert template.end_ids == (2, 24)
    assert (template.think_open, template.think_close) == (18, 19)


def test_a_template_that_trims_messages_changes_nothing(
    laguna_model: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    found = load_template(with_template(tmp_path / "m", laguna_model, CHATML), tokenizer)
    assert tokenizer.decode(found.tail()).decode() == "</task></system>\n<assistant>"


def test_a_template_without_a_system_role(laguna_model: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    source = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + CHATML
    found = load_template(with_template(tmp_path / "m", laguna_model, source), tokenizer, "Be brief.")
    assert b"user\nBe brief.\n\n" in tokenizer.decode(found.open_first())


def test_the_system_text_is_part_of_the_fingerprint(laguna_model: Path, tokenizer: Tokenizer) -> None:
    one, two = (load_template(laguna_model, tokenizer, text) for text in ("One.", "Two."))
    assert one.fingerprint != two.fingerprint
    assert one.fingerprint == load_template(laguna_model, tokenizer, "One.").fingerprint


def test_the_template_may_lie_in_a_file_of_its_own(laguna_model: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    folder = with_template(tmp_path / "m", laguna_model, "{{ broken")
    (folder / "chat_template.jinja").write_text(CHATML)
    assert load_template(folder, tokenizer).tail().size


@pytest.mark.parametrize(
    "source",
    ["{{ broken", "no messages", "{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}", 7],
)
def test_a_template_that_cannot_be_cut_is_refused(
    laguna_model: Path, tokenizer: Tokenizer, tmp_path: Path, source: object
) -> None:
    folder = with_template(tmp_path / "m", laguna_model, "")
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": source}))
    with pytest.raises(BrokenTemplate):
        load_template(folder, tokenizer)


def test_the_sandbox_holds(laguna_model: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    source = "{{ messages.__class__.__mro__[1].__subclasses__() }}" + CHATML
    with pytest.raises(BrokenTemplate):
        load_template(with_template(tmp_path / "m", laguna_model, source), tokenizer)


def test_thinking_is_part_of_the_prefixs_identity_only_where_it_changes_the_head(
    laguna_model: Path, tokenizer: Tokenizer, template: ChatTemplate, tmp_path: Path, open_workspace: Opener
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.py").write_text("A = 1\n")
    source = "{% if enable_thinking %}<think>{% endif %}" + CHATML
    other = load_template(with_template(tmp_path / "m", laguna_model, source), tokenizer)
    for found, same in ((template, True), (other, False)):
        space = open_workspace(root, template=found)
        off, on = (space.prompt("Why?", thinking=thinking) for thinking in (False, True))
        prefixes = [prompt.ids[: prompt.prefix_tokens].tolist() for prompt in (off, on)]
        assert (prefixes[0] == prefixes[1]) is same
        assert (off.identity == on.identity) is same
