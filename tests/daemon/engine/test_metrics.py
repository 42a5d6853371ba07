"""Reading Prometheus pages; the page is one of the real engine's, drafts added in its own form."""

from __future__ import annotations

from pathlib import Path

from laguna_daemon.engine.metrics import Metrics, parse_metrics

PAGE = (Path(__file__).parents[2] / "cases" / "engine" / "metrics.txt").read_text()


def test_a_real_page() -> None:
    assert parse_metrics(PAGE) == Metrics(
        running=2,
        waiting=1,
        kv_usage=0.25,
        prompt_tokens=666,
        generated_tokens=2,
        prefix_queries=700,
        prefix_hits=256,
        preemptions=3,
        drafts=100,
        draft_tokens=700,
        accepted_tokens=150,
        accepted_at={0: 90, 1: 60},
    )


def test_acceptance_length() -> None:
    assert parse_metrics(PAGE).acceptance_length == 2.5
    assert Metrics().acceptance_length is None


def test_engine_cores_are_added_up() -> None:
    second = PAGE.replace('engine="0"', 'engine="1"')
    both = parse_metrics(PAGE + second)
    assert (both.running, both.prefix_hits, both.accepted_at[0]) == (4, 512, 180)


def test_odd_pages() -> None:
    assert parse_metrics("") == Metrics()
    assert (
        parse_metrics("<html>\nvllm:num_requests_running NaNs\nvllm:num_requests_waiting 3 1700000000\n").waiting == 3
    )


def test_movement_is_any_work() -> None:
    still = Metrics(running=1, kv_usage=0.5)
    assert still.movement == Metrics(running=1, kv_usage=0.5).movement
    for other in (Metrics(running=1, kv_usage=0.6), Metrics(running=1, kv_usage=0.5, generated_tokens=1)):
        assert still.movement != other.movement


def test_the_size_of_the_pool() -> None:
    labels = 'block_size="16",cache_dtype="fp8",engine="0",num_gpu_blocks="13690",sliding_window="None"'
    found = parse_metrics(f"{PAGE}vllm:cache_config_info{{{labels}}} 1.0\n")
    assert (found.kv_blocks, found.block_size) == (13_690, 16)
    assert parse_metrics('vllm:cache_config_info{num_gpu_blocks="None"} 1.0').kv_blocks == 0
