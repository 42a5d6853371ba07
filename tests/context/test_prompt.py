"""A prompt is the model's own rendering, id for id."""

from __future__ import annotations

from pathlib import Path

import jinja2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laguna_context.template import SYSTEM_TEXT
from laguna_context.tokens import Tokenizer
from laguna_context.workspace import Budget, PromptTooLarge, Workspace
from support.laguna_tokenizer import CONTROLS, TEMPLATE
from support.repositories import repository, write

ROOMY = Budget(context=20_000, output=500, task=500, overlay=2000)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {
        "a.py": "def f():\n\treturn 1\n\n\n",
        "b.txt": "  leading\n\n",
        "ü é.md": "# 日本 😋",
        "crlf.c": "int x;\r\n",
    }
    return repository(tmp_path_factory.mktemp("prompts") / "repo", files, commit=True)


@pytest.fixture
def space(root: Path, open_workspace: object) -> Workspace:
    return open_workspace(root, ROOMY)  # type: ignore[operator, no-any-return]


@given(st.text(max_size=60), st.lists(st.tuples(st.text(max_size=8), st.text(max_size=30)), max_size=2), st.booleans())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_prompt_is_the_chat_template_tokenised_whole(
    space: Workspace, tokenizer: Tokenizer, question: str, extras: list[tuple[str, str]], thinking: bool
) -> None:
    prompt = space.prompt(question, extras=extras, thinking=thinking)
    text = tokenizer.decode(prompt.ids).decode()
    content = text.split("</system>\n<user>", 1)[1].rsplit("</user>\n<assistant>", 1)[0]
    messages = [{"role": "system", "content": SYSTEM_TEXT}, {"role": "user", "content": content}]
    whole = jinja2.Template(TEMPLATE).render(
        messages=messages, bos_token=CONTROLS[2], add_generation_prompt=True, enable_thinking=thinking
    )
    assert whole == text
    assert prompt.ids.tolist() == tokenizer.encode_controlled(whole).tolist()


def test_control_strings_in_a_question_stay_text(space: Workspace) -> None:
    spoof = "".join(CONTROLS.values())
    prompt = space.prompt(spoof, extras=[("stdin", spoof)])
    plain = space.prompt("x")
    controls = set(CONTROLS)
    assert [i for i in prompt.ids.tolist() if i in controls] == [i for i in plain.ids.tolist() if i in controls]


def test_the_parts_add_up_and_spans_lie_where_documents_do(space: Workspace, root: Path, tokenizer: Tokenizer) -> None:
    prompt = space.prompt("Why?", buffers={"a.py": "unsaved = 1\n"})
    assert prompt.ids.size == prompt.prefix_tokens + prompt.overlay_tokens + prompt.task_tokens
    for span in prompt.documents:
        text = tokenizer.decode(prompt.ids[span.start : span.end]).decode()
        assert text.startswith(("<document path=", "<change n="))
        assert text.rstrip().endswith(">")
    assert prompt.documents[-1].end == prompt.prefix_tokens + prompt.overlay_tokens


def test_two_prompts_share_everything_up_to_the_task(space: Workspace) -> None:
    one, two = space.prompt("One?"), space.prompt("Two, thinking?", thinking=True)
    assert one.ids[: one.prefix_tokens].tolist() == two.ids[: two.prefix_tokens].tolist()
    assert one.identity == two.identity


def test_a_prompt_that_leaves_no_room_is_refused(space: Workspace) -> None:
    with pytest.raises(PromptTooLarge, match="question is too long") as refused:
        space.prompt("word " * 30_000)
    assert refused.value.limit == 19_500
    assert refused.value.tokens > refused.value.limit
    assert space.prompt("short").ids.size < 19_500


def test_secrets_are_markers_everywhere(tmp_path: Path, open_workspace: object, tokenizer: Tokenizer) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    root = repository(tmp_path / "repo", {"a.py": f"TOKEN = '{token}'\n", "id_rsa": "PRIVATE\n"}, commit=True)
    space = open_workspace(root, ROOMY)  # type: ignore[operator]
    write(root, {"b.py": f"x = '{token}'\n"})
    space.changed(["b.py"])
    prompts = [
        space.prompt("?"),
        space.prompt("?", buffers={"a.py": f"y = 1\nT = '{token}'\n"}, extras=[("in", token)]),
    ]
    for prompt in prompts:
        text = tokenizer.decode(prompt.ids).decode()
        assert token not in text
        assert "[redacted: " in text
        assert "PRIVATE" not in text
    manifest = space.manifest()
    assert {finding.path for finding in manifest.findings} == {"a.py", "b.py"}
    assert manifest.skipped["secret"] == 1
    off = open_workspace(root, ROOMY, secrets=False)  # type: ignore[operator]
    assert token in tokenizer.decode(off.prompt("?").ids).decode()


def test_where_the_cache_broke(space: Workspace) -> None:
    prompt = space.prompt("?", buffers={"a.py": "unsaved = 1\n"})
    second = prompt.documents[1]
    assert space.where_broke(second.start + 1, prompt, block=16) == second.path
    assert space.where_broke(0, prompt, block=16) == prompt.documents[0].path
    assert space.where_broke(prompt.prefix_tokens - 5, prompt, block=16) is None
    assert space.where_broke(prompt.ids.size, prompt, block=16) is None
