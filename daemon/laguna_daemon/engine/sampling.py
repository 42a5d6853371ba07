"""Sampling parameters, and the rules by which the engine would refuse them or serve them wrongly.

What the engine would refuse is refused here first, with the reason, before a long prompt is sent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from laguna_daemon.errors import OverBudget, ParameterRefused

# vLLM accepts min_p and logit_bias beside speculative decoding from this version on.
_SPECULATIVE_MIN_P = (0, 33)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to choose tokens; every field goes into every request, since the engine's own defaults differ by model.

    ``temperature`` 0 is greedy; ``top_k`` 0 is off. ``structured`` is vLLM's ``structured_outputs`` object.
    ``token_ids``: the answer's ids are wanted; with them vLLM sends back the prompt's, 1.1 MB at 190,000 tokens.
    """

    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    stop_token_ids: tuple[int, ...] = ()
    stop: tuple[str, ...] = ()
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    ignore_eos: bool = False
    min_tokens: int = 0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    structured: Mapping[str, Any] | None = None
    cache_salt: str | None = None
    token_ids: bool = True


@dataclass(frozen=True, slots=True)
class Traits:
    """What the rules need to know of an engine; 0 or an empty text means unknown (``version``: (0, 32))."""

    context: int = 0
    vocabulary: int = 0
    device: str = ""
    speculation: str = ""
    version: tuple[int, ...] = ()


def check(sampling: Sampling, traits: Traits, prompt_tokens: int) -> None:
    """Raise ParameterRefused or OverBudget if the engine described by ``traits`` must not get this request."""
    _check_ranges(sampling)
    _check_ids(sampling, traits)
    _check_speculation(sampling, traits)
    if prompt_tokens < 1:
        raise ParameterRefused("The prompt is empty.", "Send at least one token.")
    if traits.context and prompt_tokens + sampling.max_tokens > traits.context:
        raise OverBudget(
            f"The prompt has {prompt_tokens} tokens and asks for {sampling.max_tokens} more; "
            f"the engine's context holds {traits.context}.",
            "Ask for less output, leave files out, or use a profile with a larger context.",
        )


def _check_ranges(sampling: Sampling) -> None:
    bounds = (
        ("max_tokens", sampling.max_tokens, 1, math.inf),
        ("temperature", sampling.temperature, 0, 2),
        ("top_k", sampling.top_k, 0, math.inf),
        ("min_p", sampling.min_p, 0, 1),
        ("presence_penalty", sampling.presence_penalty, -2, 2),
        ("frequency_penalty", sampling.frequency_penalty, -2, 2),
        ("min_tokens", sampling.min_tokens, 0, sampling.max_tokens),
    )
    for name, value, low, high in bounds:
        if not low <= value <= high:
            end = "any" if high == math.inf else f"{high:g}"
            raise ParameterRefused(f"{name} is {value}.", f"It must lie between {low:g} and {end}.")
    if not 0 < sampling.top_p <= 1:
        raise ParameterRefused(f"top_p is {sampling.top_p}.", "It must be above 0 and at most 1.")
    if not 0 < sampling.repetition_penalty < math.inf:
        raise ParameterRefused(
            f"repetition_penalty is {sampling.repetition_penalty}.", "It must be finite and above 0; 1 is off."
        )
    if "" in sampling.stop:
        raise ParameterRefused("A stop text is empty: it would end every answer at once.", "Remove it.")


def _check_ids(sampling: Sampling, traits: Traits) -> None:
    if not traits.vocabulary:
        return
    for name, ids in (("stop_token_ids", sampling.stop_token_ids), ("logit_bias", tuple(sampling.logit_bias))):
        wrong = [number for number in ids if not 0 <= number < traits.vocabulary]
        if wrong:
            raise ParameterRefused(
                f"{name} holds {wrong[0]}, which is not a token of this model.",
                f"Token ids lie between 0 and {traits.vocabulary - 1}.",
            )


def _check_speculation(sampling: Sampling, traits: Traits) -> None:
    if not traits.speculation:
        return
    refused = [name for name, on in (("min_p", sampling.min_p), ("logit_bias", sampling.logit_bias)) if on]
    if refused and traits.version < _SPECULATIVE_MIN_P:
        raise ParameterRefused(
            f"{' and '.join(refused)} cannot be used: this vLLM refuses them while speculative decoding is on.",
            "Leave them out, use a profile without draft, or vLLM 0.33 or later.",
        )
    if traits.speculation == "ngram" and sampling.temperature > 0:
        raise ParameterRefused(
            "Speculating from the prompt's own n-grams is only safe greedily; sampling can end the engine.",
            "Set temperature to 0, or switch speculative-config off.",
        )
