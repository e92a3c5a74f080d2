"""What holds a server up, by recorded and made-up loads; what would help; and what a trial makes of it."""

import json
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from foundation.errors import MaiError
from serverctl import tuning
from serverctl.commands.load import tune
from serverctl.load.bench.compare import compare_pairs
from serverctl.load.bench.report import Measurement, Report, Sample, ServerSide
from serverctl.load.bench.workload import Setting, Workload
from serverctl.load.client import Failure, on_loopback
from serverctl.load.metrics import ServerMetrics
from serverctl.load.tune.advice import Advice, Reading, advise, changes
from serverctl.load.tune.bottleneck import Bottleneck, find_bottleneck, unseen_images, vision_share
from serverctl.load.tune.trial import judge, workload_like
from serverctl.load.window import Snapshot, Window, last_load, since_start, take_snapshot
from serverctl.models.find import find_model
from serverctl.plan.goal import Goal
from serverctl.process.load_record import LoadRecord, read_record
from serverctl.process.request import ServerRequest
from serverctl.process.state import Folder, State

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[1] / "data" / "tuning"


def load(
    requests: int = 40, seconds: float = 20.0, *, images: float = 0.05, queue: float = 0.0, prefill: float = 0.3,
    decode: float = 0.5, running: float = 4, waiting: float = 0, kv_use: float = 0.3, prompt: int = 9000,
    answer: int = 100, **counters: float,
) -> Window:  # fmt: skip
    """A load of so many requests whose mean time has these parts (seconds), with these loads in the middle of it."""
    whole = images + queue + prefill + decode
    sums = {
        "finished": 1, "first_tokens": 1, "queued": 1, "first_token_s": images + queue + prefill, "queue_s": queue,
        "prefill_s": prefill, "decode_s": decode, "whole_s": whole, "prompt_tokens": prompt, "answer_tokens": answer,
        "image_queries": 3, "image_hits": 2, "prefix_queries": prompt, "prefix_hits": 0.7 * prompt,
    }  # fmt: skip
    end = {name: requests * value for name, value in sums.items()} | counters
    begin = dict.fromkeys(end, 0.0)
    middle = Snapshot(1000 + seconds / 2, begin, {"running": running, "waiting": waiting, "kv_use": kv_use})
    return Window((Snapshot(1000.0, begin), middle, Snapshot(1000 + seconds, end)))


def replaced_use(window: Window, kv_use: float) -> Window:
    """The same load with another use of the KV cache in the middle of it."""
    first, middle, last = window.snapshots
    return Window((first, replace(middle, loads={**middle.loads, "kv_use": kv_use}), last))


def kind_of(window: Window | None, slots: int | None = 8, kv_tokens: int | None = 200_000, vision: float = 0.0) -> str:
    return find_bottleneck(window, slots, kv_tokens, vision).kind


def recorded(name: str) -> tuple[Window, dict[str, Any]]:
    """A load on a real vLLM 0.32 (a tiny model on one core), as it was recorded."""
    document = json.loads((DATA / f"{name}.json").read_text())
    window = last_load([snapshot for one in document["snapshots"] if (snapshot := Snapshot.from_json(one))])
    assert window is not None
    return window, document


# --------------------------------------------------------------------------------------------------- the bottleneck


def test_as_many_slots_as_clients_are_not_what_requests_wait_for() -> None:
    first, middle, last = load(seconds=40, queue=3.0, running=4).snapshots
    later = replace(middle, at=middle.at + 1, loads={**middle.loads, "running": 3.0, "waiting": 1.0})
    four = Window((first, middle, later, last))  # at one moment four run, at another one waits for the prompts of three
    assert find_bottleneck(four, slots=4, kv_tokens=200_000).kind == "prefill"


def test_one_slot_under_eight_clients_is_named_though_vllm_calls_it_capacity() -> None:
    window, document = recorded("one-slot-8-clients")
    found = find_bottleneck(window, document["max_num_seqs"], document["kv_tokens"], 0.8)
    assert found.kind == "slots"
    assert "1 slots" in found.because
    assert window.clients == 8
    counted = since_start(window.snapshots[-1])  # right after the load
    assert find_bottleneck(counted, document["max_num_seqs"], document["kv_tokens"]).kind == "slots"
    alone, document = recorded("one-slot-1-client")
    assert alone.clients == 1
    assert kind_of(alone, document["max_num_seqs"], document["kv_tokens"]) == "prefill"
    assert kind_of(alone, document["max_num_seqs"], document["kv_tokens"], vision=0.8) == "images"


def test_large_screenshots_are_named_by_what_comes_before_the_engine_and_the_vision_towers_part_of_prefill() -> None:
    window, document = recorded("large-screenshots-4-clients")
    model = find_model(str(Path(__file__).parents[2] / "models" / "tiny-qwen3-vl"))
    edge = document["settings"]["longest_edge"]
    assert window.images is not None
    assert window.prompt_tokens is not None
    share = vision_share(model, (1920, 1080), edge, window.images, window.prompt_tokens)
    assert kind_of(window, document["max_num_seqs"], document["kv_tokens"], share) == "images"


def test_a_small_cache_under_eight_clients_is_named_and_its_remedy_is_as_large_as_they_need() -> None:
    window, document = recorded("small-cache-8-clients")
    found = find_bottleneck(window, document["max_num_seqs"], document["kv_tokens"], 0.8)
    assert found.kind == "kv"
    assert find_bottleneck(since_start(window.snapshots[-1]), 8, document["kv_tokens"]).kind == "kv"
    metrics = ServerMetrics(kv_tokens=document["kv_tokens"])
    size = values(advise(Reading(found, window, metrics, document["settings"], processor=True)))[
        "kv_cache_memory_bytes"
    ]
    assert 3 < size / document["settings"]["kv_cache_memory_bytes"] < 5


def test_requests_that_wait_while_slots_are_free_and_the_cache_is_not_wait_for_the_cache() -> None:
    found = find_bottleneck(load(queue=3.0, running=2, waiting=6, kv_use=0.9), slots=8, kv_tokens=20_000)
    assert found.kind == "kv"
    assert "hold 2 requests of 9,100" in found.because


#: As seen on a real vLLM with steps of 256 tokens: four clients, 7 % of the cache in use while they waited.
EMPTY_CACHE = load(queue=8.8, prefill=4.2, decode=0.5, running=1, waiting=3, kv_use=0.07, prompt=6059, answer=8)
#: Prompts are computed one after the other in any number of slots: more slots would not help.
COMPUTING = load(queue=3.0, prefill=0.5, decode=0.01, running=1, waiting=6)


@pytest.mark.parametrize(
    ("window", "given", "kind"),
    [
        (EMPTY_CACHE, {"slots": 32, "kv_tokens": 131_072}, "prefill"),
        (replaced_use(EMPTY_CACHE, 0.97), {"slots": 32, "kv_tokens": 131_072}, "kv"),
        (load(images=2.0), {}, "images"),  # without waiting, the largest part of a request
        (load(prefill=2.0), {}, "prefill"),
        (load(decode=2.0, prefill=0.05), {}, "decode"),
        (load(queue=3.0, running=4, waiting=1), {"slots": 4}, "slots"),
        (load(preemptions=4.0), {}, "kv"),
        (load(preemptions=0.0), {}, "prefill"),
        (load(queue=3.0, running=3, waiting=5), {}, "prefill"),  # everything has room
        (COMPUTING, {"slots": 1}, "prefill"),
        (COMPUTING, {"slots": 1, "vision": 0.9}, "images"),
        (load(queue=3.0, prefill=0.2, decode=0.5, running=1, waiting=6), {"slots": 1}, "slots"),
        (load(requests=20, seconds=200.0), {}, "client"),
        (load(requests=2, seconds=14.0), {}, "client"),  # two requests are enough to see that a server idles
        (load(requests=2, seconds=3.0), {}, "unknown"),
        (load(requests=3, seconds=3.0), {}, "unknown"),
        (None, {}, "unknown"),
        (Window((Snapshot(0.0), Snapshot(10.0, {"finished": 50.0}))), {}, "unknown"),  # it does not tell its times
    ],
)
def test_the_bottleneck_of_a_load(window: Window | None, given: dict[str, Any], kind: str) -> None:
    assert kind_of(window, **given) == kind


def test_answers_that_are_slow_because_prompts_of_others_are_computed_beside_them_are_no_slow_decoding() -> None:
    """As seen on a real vLLM without its prefix cache: eight clients, prompts of 2,200 tokens, answers of six."""
    busy = load(
        requests=29, seconds=10.4, images=0.28, queue=0.51, prefill=0.59, decode=1.4, running=7, prompt=2225, answer=6
    )
    found = find_bottleneck(busy, 32, 131_072)
    assert found.kind == "prefill"
    assert "prompts of other requests" in found.because
    alone = load(requests=13, seconds=10, images=0.02, prefill=0.1, decode=0.65, running=1, prompt=2225, answer=60)
    assert kind_of(alone, 32, 131_072) == "decode"


def test_with_one_slot_no_answer_is_written_beside_a_prompt() -> None:
    """Those whose images are still prepared are in the server, but not in its engine."""
    one = load(requests=24, seconds=12.0, images=1.0, queue=2.0, prefill=0.2, decode=0.3, running=1, waiting=5)
    assert one.beside_prefills == 0
    assert kind_of(one, slots=1, vision=0.8) == "slots"


# ------------------------------------------------------------------------------------------------------- the window


def test_the_last_load_is_the_last_stretch_of_work_and_not_the_night_before() -> None:
    def at(moment: float, finished: float) -> Snapshot:
        return Snapshot(moment, {"finished": finished})

    window = last_load([at(0, 0), at(5, 40), at(9000, 40), at(9005, 45), at(9010, 50), at(9500, 50)])
    assert window is not None
    assert (window.snapshots[0].at, window.snapshots[-1].at, window.finished) == (9000, 9010, 10)
    assert last_load([at(0, 5), at(10, 5)]) is None
    assert last_load([]) is None


def test_a_window_begins_with_its_first_request_not_with_the_first_that_ended() -> None:
    """Eight requests of ten seconds that end together were eight at once, not hundreds."""

    def at(moment: float, finished: float, running: float) -> Snapshot:
        return Snapshot(moment, {"finished": finished, "whole_s": 10 * finished}, {"running": running})

    window = last_load([at(0, 0, 0), at(5, 0, 8), at(9.5, 0, 8), at(10, 8, 0)])
    assert window is not None
    assert window.seconds == 10
    assert window.clients == 8


def test_an_earlier_start_of_the_server_is_no_part_of_a_window() -> None:
    window = last_load([Snapshot(0, {"finished": 900}), Snapshot(10, {"finished": 1}), Snapshot(20, {"finished": 9})])
    assert window is not None
    assert window.finished == 8


def test_a_page_of_metrics_becomes_a_snapshot_and_back_from_json() -> None:
    page = (
        'vllm:num_requests_running{engine="0"} 2.0\nvllm:kv_cache_usage_perc{engine="0"} 0.5\n'
        'vllm:request_success_total{finished_reason="stop"} 3\nvllm:request_success_total{finished_reason="length"} 4\n'
    )
    snapshot = take_snapshot(page, 12.5)
    assert snapshot.counters == {"finished": 7.0}
    assert snapshot.loads == {"running": 2.0, "kv_use": 0.5}
    assert Snapshot.from_json(json.loads(json.dumps(snapshot.to_json()))) == snapshot
    for broken in (None, {}, [1], {"at": 1}):
        assert Snapshot.from_json(broken) is None


def test_the_record_holds_the_work_and_not_the_idle_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAI_SERVER_STATE", str(tmp_path))
    folder = Folder("default")
    folder.make()
    record = LoadRecord(folder)

    def page(finished: int, running: int = 0) -> str:
        return f"vllm:request_success_total {finished}\nvllm:num_requests_running {running}\n"

    for text in (page(1), page(1), None, page(1, running=2), page(4), page(4), page(4)):
        record.take(text)
    assert [one.counters["finished"] for one in read_record(folder)] == [1, 1, 1, 4]
    (folder.path / "load.jsonl").write_text('nonsense\n{"at": 1}\n[1]\n')
    assert read_record(folder) == []


# ------------------------------------------------------------------------------------------------------- what is said


def test_a_person_is_told_the_bottleneck_where_the_time_goes_and_how_long_ago_that_was(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ground = reading(load(queue=3.0, running=1, waiting=7), "slots")
    found = advise(ground)
    tune.show(ground, found, changes(found, frozenset()))
    text = capsys.readouterr().out
    assert "minutes ago, up to 8 at once" in text
    assert "3.00 waiting" in text
    assert "Bottleneck: slots" in text
    assert "max_num_seqs: 1 -> 8" in text
    tune.show(replace(ground, fixed=frozenset({"max_num_seqs"})), found, [])
    assert "--also-own" in capsys.readouterr().out


def test_a_setting_that_was_given_as_a_flag_of_vllm_is_ones_own_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    request = ServerRequest(Goal(extra=("--max-num-seqs", "1")), "python")
    busy = load(queue=3.0, running=1, waiting=7)
    monkeypatch.setattr(tune, "current_state", lambda _: State(phase="ready", port=1))
    monkeypatch.setattr(tune, "read_request", lambda _: request)
    monkeypatch.setattr(tune, "observe", lambda *_, **__: busy)
    monkeypatch.setattr(
        tune, "read", lambda _, seen, window: reading(window, "slots", fixed=frozenset(seen.goal.overrides))
    )
    assert tune.main(["--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["own_settings"] == ["max_num_seqs"]
    assert document["would_apply"] == {}, "a trial would start with the person's value again"


def test_without_a_load_a_person_is_offered_one(capsys: pytest.CaptureFixture[str]) -> None:
    ground = Reading(find_bottleneck(None, 1, 1000), None, ServerMetrics(), {})
    tune.show(ground, advise(ground), [])
    assert "--load 8" in capsys.readouterr().out


# ------------------------------------------------------------------------------------------------------- what helps


def reading(window: Window | None, kind: Any, settings: dict[str, Any] | None = None, **more: Any) -> Reading:
    given = {"max_num_seqs": 1, "images": 3, "longest_edge": 2_097_152} | (settings or {})
    metrics = more.pop("metrics", ServerMetrics(kv_tokens=100_000))
    return Reading(Bottleneck(kind, "x"), window, metrics, given, **more)


def values(found: list[Advice]) -> dict[str, Any]:
    return {one.setting: one.value for one in found if one.setting}


def test_a_small_cache_grows_to_what_the_clients_need_where_it_is_given_in_bytes() -> None:
    given = {"kv_cache_memory_bytes": 100 * 2**20}
    busy = load(seconds=200.0, queue=3.0, running=2, waiting=2)
    found = values(advise(reading(busy, "kv", given, metrics=ServerMetrics(kv_tokens=20_000), processor=True)))
    assert found["kv_cache_memory_bytes"] == pytest.approx(100 * 2**20 * 5 * 9100 / 20_000, rel=0.01)
    on_card = {"gpu_memory_utilization": 0.8}
    assert values(advise(reading(busy, "kv", on_card)))["gpu_memory_utilization"] == 0.92


def test_one_client_that_asks_without_a_pause_is_one() -> None:
    assert load(requests=13, seconds=12.5, images=0.5, prefill=0.3, decode=0.2, running=1).clients == 1


#: Requests that wait for images, for a slot, and for nothing because their client asks one after the other.
PICTURES = load(images=3.0, running=3, waiting=3)
SLOTS = load(queue=3.0, running=1, waiting=7)
ALONE = load(seconds=200.0, images=3.0, running=1)
CACHES_OFF = {"mm_processor_cache_gb": 0.0, "enable_prefix_caching": False, "max_num_batched_tokens": 2048}
#: No thread makes the vision tower quicker.
IN_THE_TOWER = load(images=0.2, prefill=3.0, running=3, waiting=3)


@pytest.mark.parametrize(
    ("window", "kind", "settings", "more", "advised"),
    [
        # As many slots as clients, and never more than the cache holds.
        (SLOTS, "slots", {}, {}, {"max_num_seqs": 8}),
        (SLOTS, "slots", {}, {"metrics": ServerMetrics(kv_tokens=37_000)}, {"max_num_seqs": 4}),
        (load(preemptions=9.0), "kv", {"max_num_seqs": 32}, {}, {"max_num_seqs": 10}),
        # More threads for images, which shrink only to what keeps a full HD screen whole.
        (PICTURES, "images", {"longest_edge": 16_777_216}, {"cores": 4},
         {"renderer_num_workers": 4, "longest_edge": 2_097_152}),
        (ALONE, "images", {}, {"cores": 4}, {}),
        (IN_THE_TOWER, "images", {}, {"cores": 4}, {}),
        # Caches that are off come first where they would help.
        (PICTURES, "images", CACHES_OFF, {}, {"mm_processor_cache_gb": 4.0, "enable_prefix_caching": True}),
        (PICTURES, "prefill", CACHES_OFF, {}, {"enable_prefix_caching": True, "max_num_batched_tokens": 16_384}),
        (PICTURES, "decode", CACHES_OFF, {}, {}),
        # A prompt that takes several steps gets larger ones.
        (load(prefill=3.0), "prefill", {"max_num_batched_tokens": 2048}, {}, {"max_num_batched_tokens": 16_384}),
        # A cache smaller than the context shortens the context.
        (load(), "decode", {}, {"metrics": ServerMetrics(kv_tokens=20_000), "context": 32_768},
         {"max_model_len": 19_968}),
        (load(), "client", {}, {}, {}),
    ],
)  # fmt: skip
def test_what_is_advised(
    window: Window, kind: str, settings: dict[str, Any], more: dict[str, Any], advised: dict[str, Any]
) -> None:
    found = advise(reading(window, kind, settings, **more))
    assert list(values(found).items()) == list(advised.items())
    assert found or kind != "client", "that the clients are slow is said"


def test_clients_that_no_snapshot_saw_waiting_are_told_by_how_long_they_waited() -> None:
    """A bench of three seconds in a window of ninety, as seen on a real vLLM with one slot."""
    missed = load(requests=24, seconds=90.0, images=0.01, queue=0.84, prefill=0.06, decode=0.06, running=1)
    assert missed.clients == 8
    assert values(advise(reading(missed, "slots"))) == {"max_num_seqs": 8}


def test_images_that_no_cache_counts_are_told_by_the_time_before_the_engine() -> None:
    model = find_model(str(Path(__file__).parents[2] / "models" / "tiny-qwen3-vl"))
    given = {"images": 3, "longest_edge": 1_003_520, "mm_processor_cache_gb": 0.0}
    uncounted = {"image_queries": 0.0, "image_hits": 0.0}
    slow = load(images=1.2, prefill=2.4, decode=0.9, queue=0.4, prompt=1010, answer=8, **uncounted)
    assert slow.images is None
    assert unseen_images(slow, model, (1920, 1080), given) == 1
    text = load(images=0.02, prefill=2.4, decode=0.9, prompt=3000, **uncounted)
    assert unseen_images(text, model, (1920, 1080), given) == 0
    assert replace(slow, unseen_images=1.0).images == 1


@pytest.mark.parametrize(("known", "told"), [(0.29, True), (0.3, False)])
def test_a_prefix_cache_that_knows_less_than_three_tenths_of_the_prompts_is_told(known: float, told: bool) -> None:
    window = load(prefill=3.0, prefix_hits=known * 40 * 9000)
    texts = [one.because for one in advise(reading(window, "prefill"))]
    assert any("come from the prefix cache" in text for text in texts) is told


def test_the_persons_own_values_are_advised_upon_and_not_changed() -> None:
    found = advise(reading(load(queue=3.0, running=1, waiting=7), "slots"))
    assert changes(found, frozenset({"max_num_seqs"})) == []
    assert [one.setting for one in changes(found, frozenset())] == ["max_num_seqs"]


def test_the_vision_tower_is_most_of_a_small_models_prefill_and_little_of_a_large_ones() -> None:
    shares = [
        vision_share(find_model(name, allow_network=False), (1920, 1080), None, 3, 3 * 2040 + 1500)
        for name in ("MAI-UI-2B", "MAI-UI-8B", "MAI-UI-32B")
    ]
    assert shares == sorted(shares, reverse=True)
    assert 0.5 < shares[0] < 0.7
    assert shares[2] < 0.15
    assert vision_share(find_model("MAI-UI-8B", allow_network=False), (1920, 1080), None, 0, 500) == 0


# -------------------------------------------------------------------------------------------------------- the trial


def report(times: list[float | None], failure: str = "server_error") -> Report:
    """A bench whose requests took so many milliseconds; None is one without an answer."""
    setting = Setting(64, 64, 1, 4, "cold")
    samples = tuple(
        Sample(0.0, 1.0, time or 1.0, number=number, failure=None if time else Failure(failure, "no"))  # type: ignore[arg-type]
        for number, time in enumerate(times)
    )
    measured = Measurement(setting, samples, 1.0, ServerSide(), 4)
    return Report("server", "m", "http://127.0.0.1:1/v1", Workload(), "run", (measured,))


SLOW = [100.0, 140, 90, 300, 120, 110, 95, 130]


@pytest.mark.parametrize(
    ("after", "better"),
    [
        ([0.6 * time for time in SLOW], True),
        (SLOW, False),
        ([1.5 * time for time in SLOW], False),
        ([0.99 * time for time in SLOW], False),  # surely, but by too little
        ([60.0, 200, 60, 500, 40, 250, 60, 60], False),  # noise
        ([10.0, 10, 10], False),  # a few requests prove nothing
        ([None, *(10.0 for _ in SLOW[1:])], False),  # requests fail, however quick the others are
    ],
)
def test_a_change_is_kept_when_the_same_requests_get_shorter_by_more_than_noise(
    after: list[float | None], better: bool
) -> None:
    verdict = judge(report(list(SLOW)), report(after))
    assert verdict.better is better
    assert ("1 of 8 requests failed" in verdict.because) is (None in after)


def test_what_makes_one_request_longer_than_another_is_no_noise_between_pairs() -> None:
    long_and_short: list[float | None] = [10.0, 500.0, 20.0, 900.0, 15.0, 300.0]
    other = [None if time is None else 0.9 * time for time in long_and_short]
    difference = compare_pairs(long_and_short, other)
    assert difference is not None
    assert difference.verdict == "lower"
    assert difference.ratio == pytest.approx(0.9)
    assert compare_pairs([None, 1.0], [1.0, None]) is None


def test_a_trial_sends_what_was_seen() -> None:
    window = load(queue=3.0, running=1, waiting=7, prompt=7000, answer=90)
    work = workload_like(window, find_model("MAI-UI-8B", allow_network=False), (1920, 1080), {"images": 3})
    assert (work.images, work.concurrency, work.max_tokens, work.cache) == (3, (8,), 90, "cold")
    assert work.sizes == ((1920, 1080),)
    assert work.text_tokens == 7000 - 3 * 2040
    assert (work.repeated_text, work.repeated_images) == (0.7, 0.67), "as the caches told"
    off = {"images": 3, "mm_processor_cache_gb": 0, "enable_prefix_caching": False}
    agents = workload_like(window, find_model("MAI-UI-8B", allow_network=False), (1920, 1080), off)
    assert (agents.repeated_text, agents.repeated_images) == (0.7, 0.7), "as an agent does where no cache tells"
    small = workload_like(load(prompt=3000), find_model("MAI-UI-8B", allow_network=False), (1920, 1080), {"images": 3})
    assert small.sizes == ((1280, 720),)
    model, given = find_model("MAI-UI-8B", allow_network=False), {"images": 3, "longest_edge": 16_777_216}
    huge = workload_like(load(prompt=3 * 8160 + 40), model, (1920, 1080), given, large=True)
    assert huge.sizes == ((3840, 2160),), "a change of the images' size must be seen in a trial"


@pytest.mark.parametrize(("now", "judged"), [(20.0, 20), (3.0, 43)])
def test_the_load_of_now_is_judged_alone_where_it_is_enough_to_judge(
    now: float, judged: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def at(moment: float, finished: float) -> Snapshot:
        return Snapshot(moment, {"finished": finished}, {"running": 1.0})

    @contextmanager
    def looking(*_: object) -> Iterator[list[Snapshot]]:
        yield [at(101, 40), at(110, 40 + now)]

    monkeypatch.setattr(tuning, "_looking", looking)
    monkeypatch.setattr(tuning, "snapshot_of", lambda *_: at(100, 40))
    monkeypatch.setattr(tuning, "read_record", lambda _: [at(50, 0), at(90, 40), at(105, 40 + now)])
    clock = [0.0]  # moved by the sleep: 60 s are waited for more requests
    monkeypatch.setattr(
        tuning, "time", SimpleNamespace(sleep=lambda s: clock.append(clock[-1] + s), monotonic=lambda: clock[-1])
    )
    monkeypatch.setenv("MAI_SERVER_STATE", str(tmp_path))
    window = tuning.observe(on_loopback(1), load=None, seconds=10, state=State(port=1, ready_at=0.0))
    assert window is not None
    assert window.finished == judged


class Restarts:
    """The deeds of a trial without a server: which settings it was started with, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, times: dict[Any, list[float]]) -> None:
        self.started: list[dict[str, Any]] = []
        self.said: list[str] = []
        self._times = times
        self._now: Any = 1
        self.refuses = False  # the server does not start with the change, and goes back by itself
        state = SimpleNamespace(name="default", port=1, url="http://127.0.0.1:1/v1", model="m")
        monkeypatch.setenv("MAI_SERVER_STATE", tempfile.mkdtemp())
        Folder("default").make()
        monkeypatch.setattr(tuning, "current_state", lambda _: state)
        monkeypatch.setattr(tuning, "_restart", self._restart)
        monkeypatch.setattr(tuning, "_bench", lambda *_: report(list(self._times[self._now])))
        monkeypatch.setattr(tuning, "_forget", lambda _: self.said.append("forgotten"))
        self.inside: list[int] = [2, 1, 0]  # requests of clients, look after look
        monkeypatch.setattr(tuning.probe, "inside", lambda _: self._look())
        monkeypatch.setattr(tuning.time, "sleep", lambda _: None)
        monkeypatch.setattr(tuning.control, "as_ready", lambda state, *_: state)
        model = find_model("MAI-UI-8B", allow_network=False)
        monkeypatch.setattr(tuning, "prepare", lambda *_: SimpleNamespace(plan=SimpleNamespace(model=model)))

    def _look(self) -> int:
        assert Folder("default").gate_file.exists(), "new requests must not come in meanwhile"
        return self.inside.pop(0) if len(self.inside) > 1 else self.inside[0]

    def _restart(self, change: tuning.Change, request: ServerRequest) -> Any:
        wanted = {**request.goal.adjustments, **request.goal.overrides}
        self.started.append(wanted)
        assert Folder(change.name).is_restarting, "clients are to wait, however this change ends"
        self._now = wanted.get("max_num_seqs", 1)
        refused = {"title": "Too little memory"} if self.refuses and len(self.started) == 1 else None
        url = "http://127.0.0.1:1/v1"
        return SimpleNamespace(name="default", port=1, url=url, model="m", refused=refused, failure=None)

    def try_slots(self, own: bool = False, force: bool = False) -> list[tuning.Tried]:
        request = ServerRequest(Goal(overrides={"max_num_seqs": 1} if own else {}), "python")
        change = tuning.Change("default", request, 5.0, force, self.said.append, lambda _: None)
        ground = reading(load(queue=3.0, running=1, waiting=7), "slots")
        return tuning.try_changes(change, ground, changes(advise(ground), frozenset()))


@pytest.mark.parametrize("own", [False, True])
def test_a_change_that_is_better_stays_and_an_own_setting_an_own_one(
    monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    restarts = Restarts(monkeypatch, {1: SLOW, 8: [0.5 * time for time in SLOW]})
    tried = restarts.try_slots(own)
    assert [one.verdict.better for one in tried] == [True]
    assert restarts.started == [{"max_num_seqs": 8}]
    assert json.dumps(tried[0].to_json())


def test_the_figures_of_both_halves_of_a_trial_are_the_proof(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tune._show_tried(Restarts(monkeypatch, {1: SLOW, 8: [0.5 * time for time in SLOW]}).try_slots())
    lines = capsys.readouterr().out.splitlines()
    assert "max_num_seqs = 8: requests take x0.50" in lines[0]
    assert "kept" in lines[0]
    assert "before:" in lines[1]
    assert "0.14 s a request" in lines[1]
    assert "after:" in lines[2]
    assert "0.07 s a request" in lines[2]


def test_a_change_that_is_not_better_is_taken_back_and_does_not_come_back_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    restarts = Restarts(monkeypatch, {1: SLOW, 8: SLOW})
    assert not restarts.try_slots()[-1].verdict.better
    assert restarts.started == [{"max_num_seqs": 8}, {}]
    assert "forgotten" in restarts.said
    assert not Folder("default").is_restarting


def test_a_trial_begins_when_the_last_request_has_gone_and_nothing_is_changed_where_it_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    restarts = Restarts(monkeypatch, {1: SLOW, 8: SLOW})
    restarts.inside = [3]
    clock = iter(range(10_000))
    monkeypatch.setattr(tuning.time, "monotonic", lambda: float(next(clock)))
    with pytest.raises(MaiError, match="3 run now"):
        restarts.try_slots()
    assert restarts.started == []
    assert not Folder("default").gate_file.exists(), "clients come in again"
    assert restarts.try_slots(force=True)


def test_a_server_that_went_back_by_itself_is_not_restarted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    restarts = Restarts(monkeypatch, {1: SLOW, 8: SLOW})
    restarts.refuses = True
    (tried,) = restarts.try_slots()
    assert "it did not start: Too little memory" in tried.verdict.because
    assert restarts.started == [{"max_num_seqs": 8}]


def test_a_server_that_does_not_come_back_as_it_was_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    restarts = Restarts(monkeypatch, {1: SLOW, 8: SLOW})
    monkeypatch.setattr(tuning.control, "as_ready", lambda *_: None)
    monkeypatch.setattr(tuning.control, "failure_of", lambda state: MaiError("It did not start."))
    with pytest.raises(MaiError, match="did not start"):
        restarts.try_slots()
    assert restarts.started == [{"max_num_seqs": 8}, {}], "it was tried"


@pytest.mark.parametrize("moment", ["waiting", "before", "restart", "after"])
def test_ctrl_c_leaves_the_server_as_it_was_and_open(monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    restarts = Restarts(monkeypatch, {1: SLOW, 8: [0.5 * time for time in SLOW]})
    reached: list[str] = []

    def stopping(name: str, deed: Any) -> Any:
        def do(*arguments: Any) -> Any:
            reached.append(name)
            if name == moment and reached.count(name) == 1:
                os.kill(os.getpid(), signal.SIGTERM)  # the terminal's end is as good as Ctrl-C
            return deed(*arguments)

        return do

    benches = iter(["before", "after"])
    bench = tuning._bench

    def measure(*given: Any) -> Report:
        found: Report = stopping(next(benches), bench)(*given)
        return found

    monkeypatch.setattr(tuning, "_wait_empty", stopping("waiting", tuning._wait_empty))
    monkeypatch.setattr(tuning, "_restart", stopping("restart", restarts._restart))
    monkeypatch.setattr(tuning, "_bench", measure)
    with pytest.raises(KeyboardInterrupt):
        restarts.try_slots()
    assert restarts.started in ([], [{}], [{"max_num_seqs": 8}, {}])
    assert not Folder("default").gate_file.exists()
    assert not Folder("default").is_restarting
