"""Conversations are append-only in token ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from laguna_context.template import ChatTemplate
from laguna_context.tokens import Tokenizer
from laguna_context.workspace import Budget, Conversation, PromptTooLarge
from support.repositories import repository, write

ROOMY = Budget(context=20_000, output=500, task=500, overlay=2000)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"a.py": "a = 1\n", "b.py": "b = 1\n"}, commit=True)


def test_a_second_turn_starts_with_the_very_ids_of_the_first(
    root: Path, open_workspace: object, tokenizer: Tokenizer, template: ChatTemplate
) -> None:
    space = open_workspace(root, ROOMY)  # type: ignore[operator]
    talk = Conversation()
    first = space.prompt("What is a?", conversation=talk)
    odd = np.array([300, 301, 300, 24], dtype=np.uint32)  # ids that no re-encoding of their text would give
    talk.answered(first, odd, template.end_ids)
    write(root, {"a.py": "a = 2\n"})
    space.changed(["a.py"])
    second = space.prompt("And now?", conversation=talk)
    start = first.ids.size + 3
    assert second.ids[:start].tolist() == [*first.ids.tolist(), 300, 301, 300]
    rest = tokenizer.decode(second.ids[start:]).decode()
    assert rest.startswith("</assistant>\n<user>")
    assert rest.index('<change n="1" path="a.py"') < rest.index("<task>\nAnd now?\n</task></user>")
    assert second.overlay_seq == 1
    talk.answered(second, [400])
    third = space.prompt("Once more?", conversation=talk)
    assert third.ids[: second.ids.size + 1].tolist() == [*second.ids.tolist(), 400]
    assert b"<change" not in tokenizer.decode(third.ids[second.ids.size :]), "told once"
    assert third.conversation_tokens == third.ids.size - third.prefix_tokens - third.task_tokens


def test_a_cancelled_answer_is_closed_the_same_way(root: Path, open_workspace: object, template: ChatTemplate) -> None:
    space = open_workspace(root, ROOMY)  # type: ignore[operator]
    talk = Conversation()
    first = space.prompt("?", conversation=talk)
    talk.answered(first, [])
    second = space.prompt("?", conversation=talk)
    closer = template.open_next()
    assert second.ids[first.ids.size :][: closer.size].tolist() == closer.tolist()


def test_two_conversations_do_not_meet(root: Path, open_workspace: object) -> None:
    space = open_workspace(root, ROOMY)  # type: ignore[operator]
    one, two = Conversation(), Conversation()
    assert one.id != two.id
    one.answered(space.prompt("one", conversation=one), [500])
    assert 500 not in space.prompt("two", conversation=two).ids[-20:]


def test_after_a_compaction_a_conversation_is_moved_once(
    root: Path, open_workspace: object, tokenizer: Tokenizer
) -> None:
    space = open_workspace(root, ROOMY)  # type: ignore[operator]
    talk = Conversation()
    talk.answered(space.prompt("First?", conversation=talk), tokenizer.encode("First answer."))
    for text in ("b = 2\n", "b = 3\n", "b = 'changed'\n"):
        write(root, {"b.py": text})
        space.changed(["b.py"])
        space.prompt("Between?")
    assert space.compact(force=True)
    second = space.prompt("Second?", conversation=talk)
    text = tokenizer.decode(second.ids).decode()
    assert text.index("b = 'changed'") < text.index("First?") < text.index("First answer.") < text.index("Second?")
    assert any("conversation was moved" in note for note in second.notes)
    talk.answered(second, tokenizer.encode("Second answer."))
    assert talk.rebased == 1
    third = space.prompt("Third?", conversation=talk)
    assert third.notes == ()
    assert third.ids[: second.ids.size].tolist() == second.ids.tolist()


def test_thinking_may_change_between_turns(root: Path, open_workspace: object, tokenizer: Tokenizer) -> None:
    space = open_workspace(root, ROOMY)  # type: ignore[operator]
    talk = Conversation()
    first = space.prompt("?", conversation=talk, thinking=True)
    assert first.ids[-1] == 18
    talk.answered(first, [*tokenizer.encode("hm").tolist(), 19, *tokenizer.encode("yes").tolist()])
    second = space.prompt("?", conversation=talk)
    assert second.ids[-1] == 19
    assert second.ids[: first.ids.size].tolist() == first.ids.tolist()


def test_a_conversation_that_fills_the_context(root: Path, open_workspace: object) -> None:
    space = open_workspace(root, ROOMY)  # type: ignore[operator]
    talk = Conversation()
    talk.answered(space.prompt("?", conversation=talk), [300] * 19_400)
    with pytest.raises(PromptTooLarge, match="conversation is too long"):
        space.prompt("?", conversation=talk)
