"""What the engine would refuse is refused first, with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from laguna_daemon.engine.sampling import Sampling, Traits, check
from laguna_daemon.errors import OverBudget, ParameterRefused

PLAIN = Traits(context=2048, vocabulary=1000, device="gpu", version=(0, 25, 1))


def sampling(**changes: Any) -> Sampling:
    return Sampling(**{"max_tokens": 10, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"temperature": 2.0, "top_p": 1.0, "top_k": 20, "min_p": 0.1},
        {"stop_token_ids": (0, 999), "stop": ("\n\n",)},
        {"presence_penalty": -2.0, "frequency_penalty": 2.0, "repetition_penalty": 1.3},
        {"max_tokens": 2047},
        {"logit_bias": {5: -100.0}},
        {"min_tokens": 10},
    ],
)
def test_accepted(changes: dict[str, Any]) -> None:
    check(sampling(**changes), PLAIN, 1)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.1}, "top_p"),
        ({"top_k": -1}, "top_k"),
        ({"min_p": 1.5}, "min_p"),
        ({"presence_penalty": 3.0}, "presence_penalty"),
        ({"frequency_penalty": -3.0}, "frequency_penalty"),
        ({"repetition_penalty": 0.0}, "repetition_penalty"),
        ({"repetition_penalty": float("inf")}, "repetition_penalty"),
        ({"min_tokens": 11}, "min_tokens"),
        ({"stop": ("a", "")}, "stop text"),
        ({"stop_token_ids": (1000,)}, "stop_token_ids"),
        ({"stop_token_ids": (-1,)}, "stop_token_ids"),
        ({"logit_bias": {4000: 1.0}}, "logit_bias"),
    ],
)
def test_refused_by_name(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ParameterRefused, match=named) as caught:
        check(sampling(**changes), PLAIN, 1)
    assert caught.value.exit_code == 8
    assert caught.value.advice


@pytest.mark.parametrize("version", [(0, 25, 1), (0, 32, 0), ()])
@pytest.mark.parametrize("changes", [{"min_p": 0.05}, {"logit_bias": {3: 1.0}}])
def test_min_p_and_logit_bias_under_speculation(version: tuple[int, ...], changes: dict[str, Any]) -> None:
    drafting = Traits(vocabulary=1000, speculation="dflash", version=version)
    with pytest.raises(ParameterRefused, match=next(iter(changes))) as caught:
        check(sampling(temperature=0.7, **changes), drafting, 1)
    assert "0.33" in caught.value.advice
    check(sampling(temperature=0.7, **changes), Traits(speculation="dflash", version=(0, 33)), 1)
    check(sampling(temperature=0.7, **changes), PLAIN, 1)


def test_ngram_speculation_is_greedy() -> None:
    traits = Traits(speculation="ngram", version=(0, 32, 0), device="cpu")
    check(sampling(temperature=0.0, top_k=20), traits, 1)
    with pytest.raises(ParameterRefused, match="n-grams"):
        check(sampling(temperature=0.2), traits, 1)


def test_context() -> None:
    check(sampling(max_tokens=48), PLAIN, 2000)
    with pytest.raises(OverBudget, match=r"2001 tokens and asks for 48 more; .* holds 2048"):
        check(sampling(max_tokens=48), PLAIN, 2001)
    with pytest.raises(ParameterRefused, match="empty"):
        check(sampling(), PLAIN, 0)
