"""The arithmetic of the KV pool, and what is believed of prefixes; figures are those of docs/residency.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from laguna_daemon.residency.pool import Pool
from laguna_daemon.residency.prefixes import Ids, Prefix, Residency, common_prefix

LAGUNA = Pool(blocks=13_690, block_size=16, groups=3, window=68, batch=2048)
SMALL = Pool(blocks=101, block_size=16)  # 1,600 tokens, one group
A, B = Path("/a"), Path("/b")


def ids(seed: int, count: int) -> Ids:
    return np.random.default_rng(seed).integers(100, 50_000, count, dtype=np.uint32)


def slack(tokens: int, anchors: int = 0) -> int:
    return LAGUNA.slack(LAGUNA.resting(tokens, anchors))


def test_the_slack_that_was_measured() -> None:
    assert slack(190_000) == pytest.approx(9_300, abs=50)
    assert slack(182_000) == pytest.approx(12_000, abs=50)
    assert (slack(190_000) - slack(190_000, 4)) / 4 == pytest.approx(360, abs=5)


def test_a_whole_context_fits_and_leaves_room_for_a_completion_but_not_for_a_second_repository() -> None:
    whole = LAGUNA.running(204_800)
    assert whole <= LAGUNA.usable
    assert whole + LAGUNA.running(2_064) <= LAGUNA.usable
    assert whole + LAGUNA.running(190_000) > LAGUNA.usable
    assert LAGUNA.running(LAGUNA.tokens()) <= LAGUNA.usable < LAGUNA.running(LAGUNA.tokens() + 32)


def test_common_prefix() -> None:
    one = ids(1, 50)
    other = one.copy()
    assert common_prefix(one, other) == 50
    other[20] += 1
    assert common_prefix(one, other) == 20
    assert common_prefix(one, one[:7]) == 7
    assert common_prefix(one, one[:0]) == 0


@pytest.fixture
def residency() -> Residency:
    found = Residency()
    found.pool = SMALL
    return found


def warm(residency: Residency, root: Path, tokens: Ids) -> Prefix:
    prefix = residency.follow(root, tokens, root.name)
    residency.add(tokens, len(tokens) - prefix.warm)
    return prefix


def test_other_work_evicts_a_prefix_once_it_is_longer_than_the_slack(residency: Residency) -> None:
    prefix = warm(residency, A, ids(1, 1000))
    assert residency.state(prefix) == "resident"
    room = residency.slack(prefix)
    assert room == SMALL.slack(SMALL.resting(1000))
    residency.add(ids(2, room), room)
    assert residency.state(prefix) == "resident"
    assert residency.common(prefix.ids) == 1000
    residency.add(ids(3, 1), 1)
    assert residency.state(prefix) == "evicted"
    assert residency.common(prefix.ids) == 0, "nothing of it is counted on"
    assert residency.ever(prefix.ids) == 1000, "but it was there"


def test_a_touch_makes_it_young_again(residency: Residency) -> None:
    prefix = warm(residency, A, ids(1, 1000))
    for number in range(10):
        residency.add(ids(10 + number, 300), 300)
        residency.add(prefix.ids, 1)
    assert residency.state(prefix) == "resident"
    assert residency.work > 3 * residency.slack(prefix)


def test_a_question_touches_its_prefix_and_its_own_tokens_count(residency: Residency) -> None:
    prefix = warm(residency, A, ids(1, 1000))
    residency.add(ids(2, 300), 300)
    answer = ids(4, 40)
    residency.generated(len(answer))
    residency.add(np.concatenate([prefix.ids, ids(3, 100)]), 100, answer)
    assert residency.since(prefix) == 140


def test_the_engines_word_corrects_the_belief(residency: Residency) -> None:
    prefix = warm(residency, A, ids(1, 1000))
    question = np.concatenate([prefix.ids, ids(2, 50)])
    assert not residency.found(question, 992, 1000, 16), "whole blocks only: nothing was lost"
    assert residency.found(question, 320, 1000, 16)
    assert (prefix.evictions, prefix.warm) == (1, 320)
    assert residency.common(question) <= 320


def test_a_second_repository_that_does_not_fit_evicts_the_first(residency: Residency) -> None:
    first = warm(residency, A, ids(1, 1000))
    second = warm(residency, B, ids(2, 1000))
    assert (residency.state(first), residency.state(second)) == ("evicted", "resident")
    assert not residency.fits_beside(first, [second])


def test_two_small_ones_share_the_pool_and_touching_one_ages_the_other(residency: Residency) -> None:
    first, second = warm(residency, A, ids(1, 400)), warm(residency, B, ids(2, 400))
    assert residency.fits_beside(first, [second])
    assert (residency.state(first), residency.state(second)) == ("resident", "resident")
    before = residency.slack(second)
    residency.add(first.ids, 1)
    assert residency.slack(second) == before - 400, "its blocks no longer stand before the other's in the line"


def test_offloaded_needs_a_whole_copy(residency: Residency) -> None:
    residency.offloads = residency.holes = True
    prefix = warm(residency, A, ids(1, 1000))
    residency.add(ids(2, 1500), 1500)
    assert residency.state(prefix) == "evicted"
    prefix.settled = True
    assert residency.state(prefix) == "offloaded"
    assert residency.common(prefix.ids) == 1000


def test_what_is_computed_anew_has_holes_in_its_copy_again(residency: Residency) -> None:
    residency.pool = LAGUNA
    residency.offloads = residency.holes = True
    prefix = warm(residency, A, ids(1, 100_000))
    prefix.settled = True
    residency.add(np.concatenate([prefix.ids, ids(2, 5000)]), 5000)
    assert prefix.settled, "a long question behind it changes nothing"
    residency.add(prefix.ids, 60_000)
    assert not prefix.settled


def test_a_request_that_shares_a_beginning_alone_says_nothing_of_the_rest(residency: Residency) -> None:
    residency.pool = LAGUNA
    prefix = warm(residency, A, ids(1, 100_000))
    other = np.concatenate([prefix.ids[:300], ids(2, 50_000)])
    residency.found(other, 0, residency.common(other), 16)
    assert (prefix.warm, prefix.evictions) == (100_000, 0)
    again = np.concatenate([prefix.ids, ids(3, 100)])
    assert residency.found(again, 240, residency.common(again), 16)
    assert (prefix.warm, prefix.evictions) == (240, 1)


def test_anchors_that_were_not_touched_for_too_long_are_let_go() -> None:
    residency = Residency(pool=LAGUNA)
    prefix = residency.follow(A, ids(1, 190_000), "a", (50, 90))
    for end in (94_992, 170_992, 190_000):
        residency.add(prefix.ids[:end], end - prefix.warm)
    residency.let_go(prefix)
    assert prefix.held_anchors() == (), "the last segments took longer than the pool remembers"
    prefix = residency.follow(B, ids(2, 100_000), "b", (95,))
    residency.add(prefix.ids[:94_992], 94_992)
    residency.add(prefix.ids, 5_008)
    slack = residency.slack(prefix)
    assert slack is not None
    for _ in range(slack // 1000 - 6):
        residency.add(np.concatenate([prefix.ids, ids(3, 1000)]), 1000)  # questions: the prefix stays young
        residency.let_go(prefix)
    assert residency.since(prefix) <= 1000
    assert prefix.held_anchors() == (94_992,)
    for _ in range(7):
        residency.add(np.concatenate([prefix.ids, ids(3, 1000)]), 1000)
        residency.let_go(prefix)
    assert prefix.held_anchors() == ()


def test_questions_that_begin_alike_do_not_keep_the_window_at_the_end_young() -> None:
    residency = Residency(pool=LAGUNA)
    prefix = warm(residency, A, ids(1, 100_000))
    head = ids(2, 40)  # of every question
    residency.add(np.concatenate([prefix.ids, head, ids(3, 150)]), 190)
    for number in range(4, 24):
        computed = 160  # the head is found, too
        residency.add(np.concatenate([prefix.ids, head, ids(number, 150)]), computed)
    assert residency.since(prefix) >= 20 * 150, "so that it is touched before an edit has to begin there"
    residency.add(prefix.ids, 24)
    assert residency.since(prefix) <= 24, "a touch does keep it"
    residency.pool = SMALL
    residency.add(np.concatenate([prefix.ids, head, ids(30, 150)]), 150)
    assert residency.since(prefix) <= 190, "without sliding windows every use keeps all of it"


def test_many_requests_elsewhere_do_not_make_a_repository_forgotten(residency: Residency) -> None:
    residency.offloads = True
    prefix = warm(residency, A, ids(1, 1000))
    for number in range(2, 12):
        residency.add(ids(number, 300), 300)
    assert residency.state(prefix) == "offloaded"
    assert residency.common(prefix.ids) == 1000


def test_host_memory_holds_two_repositories_and_not_three() -> None:
    # As replayed with vLLM's own books: 32 GiB keep two of 190,000 tokens in turn, and the third pushes out the first.
    residency = Residency(pool=LAGUNA, offloads=True, host=32 * 2**30 // 36_864)
    first, second = warm(residency, A, ids(1, 190_000)), warm(residency, B, ids(2, 190_000))
    for _ in range(10):
        assert [residency.state(prefix) for prefix in (first, second)].count("evicted") == 0
        residency.add(first.ids, 200)
        residency.add(second.ids, 200)
    third = warm(residency, Path("/c"), ids(3, 190_000))
    assert residency.state(second) == "offloaded"
    assert residency.state(first) == "evicted"
    assert residency.state(third) == "resident"


def test_a_grown_overlay_keeps_what_is_warm_and_a_new_snapshot_what_both_share(residency: Residency) -> None:
    old = ids(1, 800)
    prefix = warm(residency, A, old)
    assert residency.follow(A, np.concatenate([old, ids(2, 50)]), "a") is prefix
    assert (prefix.warm, residency.state(prefix)) == (800, "resident")
    residency.follow(A, np.concatenate([old[:500], ids(3, 400)]), "compacted")
    assert prefix.warm == 500
    assert residency.state(prefix) == "cold"


def test_where_windows_have_passed_a_branch_is_warm_only_near_the_end_and_at_anchors() -> None:
    residency = Residency(pool=LAGUNA)
    old = ids(1, 190_000)
    prefix = residency.follow(A, old, "a", (50, 90))
    residency.add(old, len(old))
    near, deep, middle = (np.concatenate([old[:cut], ids(2, 900)]) for cut in (185_000, 175_000, 120_000))
    assert residency.common(near) == 185_000
    assert residency.common(deep) == 170_992, "whole blocks"
    assert residency.common(middle) == 94_992
    assert prefix.held_anchors() == (94_992, 170_992)
    places = residency.resumable(A)
    assert places is not None
    assert set(places) >= {0, 94_992, 170_992, 190_000}
    assert not [place for place in places if 170_992 < place < 180_000], "windows that have passed"
    residency.offloads = True
    assert residency.resumable(A) is None, "host memory has them"
    residency.offloads = False
    residency.follow(A, deep, "compacted", (50, 90))
    assert (prefix.warm, prefix.anchors) == (170_992, (94_992, 170_992))


def test_after_a_restart_nothing_is_held(residency: Residency) -> None:
    prefix = warm(residency, A, ids(1, 1000))
    residency.forget()
    assert (residency.state(prefix), residency.common(prefix.ids)) == ("evicted", 0)


def test_without_a_known_pool_everything_counts_as_held() -> None:
    residency = Residency()
    prefix = warm(residency, A, ids(1, 1000))
    residency.add(ids(2, 10**5), 10**6)
    assert residency.state(prefix) == "resident"
    assert residency.slack(prefix) is None
