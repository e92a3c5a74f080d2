"""What a server's own numbers call for, and what they do not."""

from dataclasses import replace
from typing import Any

from serverctl.metrics import ServerMetrics
from serverctl.tune import Reading, advise, changes

#: A server at ease: room in the cache, nobody waits, the caches hit.
CALM = ServerMetrics(
    kv_usage=0.2, kv_tokens=100_000, running=1, waiting=0, preemptions=0, prefix_queries=1000, prefix_hits=700,
    image_queries=100, image_hits=60, prompt_tokens=900_000, generation_tokens=100_000, requests={"stop": 100},
)  # fmt: skip


def reading(settings: dict[str, Any] | None = None, **changes: Any) -> Reading:
    given = settings if settings is not None else {"max_num_seqs": 4, "images": 6}
    return Reading(replace(CALM, **changes), given, 32_768, 12_000)


def settings_of(found: list[Any]) -> dict[str, Any]:
    return {one.setting: one.value for one in found if one.setting}


def test_a_server_at_ease_is_left_alone() -> None:
    assert advise(reading()) == []


def test_requests_that_wait_while_the_cache_has_room_get_more_slots() -> None:
    found = advise(reading(waiting=5))
    assert settings_of(found) == {"max_num_seqs": 9}
    assert "5 requests wait" in found[0].because


def test_slots_are_never_more_than_the_cache_holds() -> None:
    assert settings_of(advise(reading(waiting=500))) == {"max_num_seqs": 10}, "100,000 tokens / 10,000 a request"


def test_a_full_cache_is_not_made_fuller() -> None:
    """The guides take a full cache for a risk of running out of memory; it is allocated beforehand."""
    assert settings_of(advise(reading(waiting=5, kv_usage=0.95))) == {}


def test_requests_that_wait_for_room_are_not_helped_by_slots() -> None:
    found = advise(reading(waiting=5, waiting_for_capacity=5))
    assert settings_of(found) == {}
    assert "room in the KV cache" in found[0].because


def test_preemptions_call_for_fewer_requests_at_a_time() -> None:
    found = advise(reading({"max_num_seqs": 32, "images": 6}, preemptions=40))
    assert settings_of(found) == {"max_num_seqs": 10}
    assert "40 preemptions" in found[0].because


def test_a_single_preemption_is_no_reason() -> None:
    assert advise(reading(preemptions=1)) == []


def test_a_cache_smaller_than_the_context_shortens_the_context() -> None:
    found = advise(reading(kv_tokens=20_000, settings={"max_num_seqs": 2, "images": 6}))
    assert settings_of(found)["max_model_len"] == 20_000 // 128 * 128


def test_a_low_prefix_hit_rate_is_laid_to_the_history_rule_which_is_the_agents() -> None:
    found = advise(reading(prefix_hits=100))
    assert settings_of(found) == {}
    assert "sliding window" in found[0].because
    assert changes(found, frozenset()) == {}


def test_unknown_metrics_are_unknown_and_not_zero() -> None:
    nothing = Reading(ServerMetrics(), {"max_num_seqs": 4}, None, None)
    assert advise(nothing) == []


def test_a_few_requests_do_not_make_a_rate() -> None:
    few = reading(requests={"stop": 3}, prefix_hits=0, image_hits=0)
    assert advise(few) == []
    assert few.request_tokens == 12_000, "the plan's expectation, until enough was measured"
    assert reading().request_tokens == 10_000


def test_the_persons_own_values_are_advised_upon_and_not_changed() -> None:
    found = advise(reading(waiting=5))
    assert changes(found, frozenset({"max_num_seqs"})) == {}
    assert changes(found, frozenset()) == {"max_num_seqs": 9}
