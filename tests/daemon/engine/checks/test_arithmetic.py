"""The memory arithmetic gives the figures that were published and logged."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from laguna_daemon.engine.checks.arithmetic import kv_shape, memory, size_of_flag
from support.laguna_configs import draft_config, target_config
from support.situations import card, published

KIB, GIB = 2**10, 2**30
POOL = int(7.52 * GIB)  # 1.88 GiB on each of four cards


def test_a_layer_takes_2048_bytes_a_token_at_fp8() -> None:
    plain, wide = kv_shape(target_config(), None, "fp8"), kv_shape(target_config(), None, "auto")
    assert plain is not None and wide is not None
    assert (plain.layer_bytes, wide.layer_bytes) == (2048, 4096)


def test_a_token_takes_24_kib_without_and_36_with_the_draft() -> None:
    without, drafted = kv_shape(target_config(), None, "fp8"), kv_shape(target_config(), draft_config(), "fp8")
    assert without is not None and drafted is not None
    assert (without.token_bytes, drafted.token_bytes) == (24 * KIB, 36 * KIB)
    assert round(190_002 * without.token_bytes / GIB, 2) == 4.35
    assert round(190_002 * drafted.token_bytes / GIB, 2) == 6.52


def test_blocks_are_those_of_vllms_log() -> None:
    shape = kv_shape(target_config(), draft_config(), "fp8")
    assert shape is not None
    assert shape.block_bytes == 589_824
    assert POOL // shape.block_bytes == 13_689
    # Logged on one H200 with this pool: "213,649 tokens, 1.04x".
    assert math.isclose(shape.capacity(POOL, 204_800, 2048), 213_649, rel_tol=2e-4)


def test_four_cards_of_24_gb_hold_one_request_and_a_little() -> None:
    found = memory(published())
    assert found is not None
    assert round(found.weights, 1) == 17.5
    assert round(found.pool, 2) == 1.88
    # Published: 212,822 tokens, 1.04 requests of 204,800.
    assert math.isclose(found.tokens, 212_822, rel_tol=0.005)
    assert round(found.tokens / 204_800, 2) == 1.04
    assert found.needed < found.pool
    assert found.sure


def test_one_h200_holds_several_repositories() -> None:
    found = memory(replace(published("laguna-s-2.1-141gb"), gpus=[card(memory=139.8)]))
    assert found is not None
    assert found.tokens > 4 * 262_144


def test_an_80_gb_card_has_no_room_for_the_draft_beside_a_long_context() -> None:
    alone = memory(replace(published("laguna-s-2.1-80gb"), gpus=[card(memory=79.1)], draft=None))
    assert alone is not None
    assert alone.pool > alone.needed
    assert 3.0 < alone.pool < 6.0


def test_a_pool_that_is_named_is_taken_as_it_is() -> None:
    found = memory(published(flags={"kv-cache-memory-bytes": POOL // 4}))
    assert found is not None
    assert round(found.pool, 2) == 1.88


@pytest.mark.parametrize(
    ("text", "size"), [("1G", GIB), (8_074_538_516, 8_074_538_516), ("1.5GiB", 3 * GIB // 2), ("512M", 512 * 2**20)]
)
def test_sizes_as_flags(text: object, size: int) -> None:
    assert size_of_flag(text) == size


def test_unknown_shapes_are_not_guessed() -> None:
    assert kv_shape({"architectures": ["X"]}, None, "fp8") is None
    assert memory(published(configs=({}, {}))) is None
