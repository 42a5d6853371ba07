"""Models and workspaces for tests of the context builder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from laguna_context import accelerator
from laguna_context.template import ChatTemplate, load_template
from laguna_context.tokens import Tokenizer, load_tokenizer
from laguna_context.workspace import Budget, Workspace

# The optional library's tests belong to an environment that has it (extra `fast`).
collect_ignore = [] if accelerator.installed() else ["test_accelerator.py"]

SMALL = Budget(context=8192, output=1024, task=1024, overlay=600)


@pytest.fixture(scope="session")
def tokenizer(laguna_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """The fast tokenizer of the Laguna-shaped model."""
    return load_tokenizer(laguna_model, cache=tmp_path_factory.mktemp("verdicts"))


@pytest.fixture(scope="session")
def template(laguna_model: Path, tokenizer: Tokenizer) -> ChatTemplate:
    """Its chat template."""
    return load_template(laguna_model, tokenizer)


Opener = Callable[..., Workspace]


@pytest.fixture
def open_workspace(tokenizer: Tokenizer, template: ChatTemplate, tmp_path: Path) -> Opener:
    """Opens workspaces that share one cache folder."""

    def start(root: Path, budget: Budget = SMALL, **options: Any) -> Workspace:
        cache = options.pop("cache_dir", tmp_path / "cache")
        options.setdefault("tokenizer", tokenizer)
        options.setdefault("template", template)
        return Workspace.open(root, budget=budget, cache_dir=cache, **options)

    return start
