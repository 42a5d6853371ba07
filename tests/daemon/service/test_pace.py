"""Segment sizes: by time, and never so short that the fixed cost of a long prompt eats the warm-up."""

import random

import pytest

from laguna_daemon.service.prefill import Pace


def warm_up(prompt: int, fixed: float, each: float, noise: float = 0.0) -> tuple[float, list[int]]:
    """Seconds and segment sizes of a warm-up on an engine of these costs, as `Pace` cuts it."""
    pace, chance = Pace(), random.Random(3)
    start, seconds, sizes = 0, 0.0, []
    while start < prompt:
        size = min(pace.size(start), prompt - start)
        took = (fixed * (start + size) + each * size) * (1 + noise * chance.uniform(-1, 1))
        pace.saw(start + size, size, took)
        start, seconds = start + size, seconds + took
        sizes.append(size)
    return seconds, sizes


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_the_fixed_cost_of_long_prompts_stays_a_small_share(noise: float) -> None:
    # As measured on one H200: 0.3 s to send and look up 190,000 ids, 0.1 ms for each token computed.
    fixed, each = 0.3 / 190_000, 1e-4
    seconds, sizes = warm_up(190_000, fixed, each, noise)
    assert seconds <= 1.25 * 190_000 * each
    assert sizes[-2] > 5_000


def test_without_a_fixed_cost_a_segment_takes_its_time_and_no_more() -> None:
    _, sizes = warm_up(50_000, 0.0, 1e-3)
    assert all(size <= 1_100 for size in sizes)
    assert sizes[5] == pytest.approx(500, rel=0.1)


def test_a_slow_machine_gets_small_segments_and_a_fast_one_large_ones() -> None:
    slow, fast = (warm_up(20_000, 0.0, each)[1] for each in (2e-3, 1e-5))
    assert max(slow[3:]) < min(fast[3:-1])
