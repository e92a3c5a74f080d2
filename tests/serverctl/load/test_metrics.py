"""What a server's /metrics say: recorded ones, missing ones, several engines, and nonsense."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverctl.load.client import Answer, Endpoint, on_loopback
from serverctl.load.metrics import Latency, ServerMetrics, parse_metrics, rate
from serverctl.process import probe

RECORDED = (Path(__file__).parents[1] / "data" / "metrics" / "vllm-0.32.0.txt").read_text(encoding="utf-8")


def percentiles(found: Latency | None) -> tuple[float, float, float]:
    assert found is not None
    return found.p50, found.p95, found.p99


def histogram(name: str, *buckets: tuple[str, float], engine: int = 0) -> str:
    lines = [f'{name}_bucket{{engine="{engine}",le="{bound}"}} {count}' for bound, count in buckets]
    return "\n".join([f"# TYPE {name} histogram", *lines, ""])


def test_recorded_metrics_are_read() -> None:
    found = parse_metrics(RECORDED)
    assert (found.kv_tokens, found.max_concurrency, found.kv_usage) == (262_144, 32.0, 0.0)
    assert (found.running, found.waiting, found.waiting_for_capacity, found.preemptions) == (0, 0, 0, 0)
    assert (found.prefix_queries, found.prefix_hits, found.image_queries, found.image_hits) == (1676, 512, 6, 2)
    assert (found.prompt_tokens, found.generation_tokens, found.finished, found.sleeping) == (1676, 121, 6, False)
    assert found.prefix_hit_rate == pytest.approx(512 / 1676)
    assert found.image_hit_rate == pytest.approx(1 / 3)
    assert percentiles(found.ttft) == pytest.approx((0.06, 0.094, 0.0988))


def test_what_is_missing_is_unknown_and_not_zero() -> None:
    found = parse_metrics("")
    assert found == ServerMetrics()
    assert all(value is None for value in found.to_json().values())


@pytest.mark.parametrize(
    "name", ["kv_cache_usage_perc", "num_requests_running", "prefix_cache_hits", "cache_config_info"]
)
def test_one_missing_metric_leaves_the_others(name: str) -> None:
    kept = "\n".join(line for line in RECORDED.splitlines() if name not in line)
    found = parse_metrics(kept)
    assert found.finished == 6
    missing = {
        "kv_cache_usage_perc": found.kv_usage,
        "num_requests_running": found.running,
        "prefix_cache_hits": found.prefix_hit_rate,
        "cache_config_info": found.kv_tokens,
    }
    assert missing[name] is None


def test_a_share_of_nothing_is_unknown() -> None:
    assert rate(0, 0) is None
    assert rate(None, 5) is None
    assert rate(0, 5) == 0.0


def test_the_size_of_the_kv_cache_is_counted_in_blocks_where_it_is_not_told() -> None:
    assert parse_metrics('vllm:cache_config_info{block_size="16",num_gpu_blocks="1000"} 1\n').kv_tokens == 16_000


def test_engines_are_added_up_and_their_cache_use_is_averaged() -> None:
    text = "".join(
        f'vllm:kv_cache_usage_perc{{engine="{engine}"}} {use}\nvllm:num_requests_running{{engine="{engine}"}} 2\n'
        f'vllm:cache_config_info{{engine="{engine}",kv_cache_size_tokens="1000",kv_cache_max_concurrency="4.5"}} 1\n'
        for engine, use in enumerate((0.2, 0.6))
    )
    found = parse_metrics(text)
    assert found.kv_usage == pytest.approx(0.4)
    assert (found.running, found.kv_tokens, found.max_concurrency) == (4, 2000, 9.0)


def ttft(*buckets: tuple[str, float], engine: int = 0) -> str:
    return histogram("vllm:time_to_first_token_seconds", *buckets, engine=engine)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (ttft(("1.0", 50), ("2.0", 100), ("+Inf", 100)), Latency(1.0, 1.9, 1.98, 100)),  # within their bucket
        (ttft(("1.0", 1), ("2.0", 2), ("+Inf", 100)), Latency(2.0, 2.0, 2.0, 100)),  # beyond the last: its bound
        (  # of all engines
            ttft(("1.0", 10), ("2.0", 10), ("+Inf", 10)) + ttft(("1.0", 0), ("2.0", 10), ("+Inf", 10), engine=1),
            Latency(1.0, 1.9, 1.98, 20),
        ),
        (ttft(("1.0", 0), ("+Inf", 0)), None),  # before the first request
    ],
)
def test_percentiles_are_read_off_the_buckets(text: str, read: Latency | None) -> None:
    assert parse_metrics(text).ttft == read


def test_what_is_no_number_is_missing() -> None:
    found = parse_metrics("vllm:kv_cache_usage_perc NaN\nvllm:num_requests_running +Inf\nvllm:num_requests_waiting 3\n")
    assert (found.kv_usage, found.running, found.waiting) == (None, None, 3)


def test_a_broken_line_costs_only_itself() -> None:
    found = parse_metrics(
        RECORDED.replace('vllm:num_requests_waiting{engine="0"', 'vllm:num_requests_waiting{{engine="0"')
    )
    assert found.waiting is None
    assert (found.running, found.kv_tokens, found.finished) == (0, 262_144, 6)
    assert found.ttft is not None


@pytest.mark.parametrize(
    "text", ["<html><body>404</body></html>", '{"detail": "Not Found"}', "vllm:\n", "vllm:x{", "\x00"]
)
def test_an_answer_that_is_no_metrics_says_nothing(text: str) -> None:
    assert parse_metrics(text) == ServerMetrics()


@given(st.text(max_size=200), st.integers(0, len(RECORDED)))
def test_any_text_is_read_without_a_crash(text: str, cut: int) -> None:
    found = parse_metrics(f"{RECORDED[:cut]}{text}\nvllm:{text}")
    for latency in (found.ttft, found.end_to_end):
        assert latency is None or math.isfinite(latency.p99)


def test_a_server_that_does_not_answer_has_no_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Endpoint, "ask", lambda *_, **__: Answer(None, "refused"))
    assert probe.read_metrics(on_loopback(1)) is None
    monkeypatch.setattr(Endpoint, "ask", lambda *_, **__: Answer(200, RECORDED))
    found = probe.read_metrics(on_loopback(1))
    assert found is not None
    assert found.finished == 6
