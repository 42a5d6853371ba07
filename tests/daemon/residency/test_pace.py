"""Segment sizes: by time, and never so short that the fixed cost of a long prompt eats the warm-up."""

import random
from collections.abc import Callable

import pytest

from laguna_daemon.residency.pace import Pace

Each = Callable[[int], float]


def warm_up(
    prompt: int, fixed: float, each: Each, noise: float = 0.0, touched: bool = False
) -> tuple[list[float], list[int]]:
    """Seconds and sizes of the segments of a warm-up on an engine of these costs, as `Pace` cuts it."""
    pace, chance = Pace(), random.Random(3)
    if touched:
        for _ in range(3):
            pace.touched(prompt, fixed * prompt * (1 + chance.random()))
    start, times, sizes = 0, [], []
    while start < prompt:
        size = min(pace.size(start), prompt - start)
        took = (fixed * (start + size) + each(start) * size) * (1 + noise * chance.uniform(-1, 1))
        pace.saw(start + size, size, took)
        start += size
        times.append(took)
        sizes.append(size)
    return times, sizes


def growing(start: int) -> float:
    """As measured on one H200: 0.06 ms for a token at the front, 0.135 ms behind 190,000 others."""
    return 6e-5 + 7.5e-5 * start / 190_000


@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize(("touched", "fixed_s"), [(False, 0.25), (True, 0.1), (True, 0.4)])
def test_the_fixed_cost_of_long_prompts_stays_a_small_share(noise: float, touched: bool, fixed_s: float) -> None:
    times, _ = warm_up(190_000, fixed_s / 190_000, growing, noise, touched)
    assert sum(times) <= 1.2 * sum(growing(start) for start in range(190_000))
    assert max(times) < 4, "and no segment is longer than somebody likes to wait"


def test_a_cost_that_grows_with_the_prompt_is_not_taken_for_a_fixed_one() -> None:
    _, sizes = warm_up(190_000, 0.02 / 190_000, growing, touched=True)
    assert sizes[-2] * growing(190_000) == pytest.approx(0.5, rel=0.3)


def test_without_a_fixed_cost_a_segment_takes_its_time_and_no_more() -> None:
    _, sizes = warm_up(50_000, 0.0, lambda _: 1e-3)
    assert all(size <= 1_100 for size in sizes)
    assert sizes[5] == pytest.approx(500, rel=0.2)


def test_a_slow_machine_gets_small_segments_and_a_fast_one_large_ones() -> None:
    slow, fast = (warm_up(20_000, 0.0, lambda _, each=each: each)[1] for each in (2e-3, 1e-5))
    assert max(slow[3:]) < min(fast[3:-1])
