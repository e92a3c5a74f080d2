"""The bench: what it sends, what it counts, and what it says when something is in its way."""

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from stubs.token_server import KEY, MODEL, Die, Hang, Refuse, TokenServer, Traits, images, texts

from foundation.errors import EnvironmentLacksError, ExitStatus, MaiError, UsageError
from serverctl.commands.load import bench as command
from serverctl.load.bench.compare import compare_pairs, compared, comparison_json
from serverctl.load.bench.measure import Progress, measure
from serverctl.load.bench.render import print_comparison, print_report
from serverctl.load.bench.report import Measurement, Report, Sample, ServerDiedError, ServerSide, server_side, summarize
from serverctl.load.bench.workload import Setting, Workload
from serverctl.load.client import Endpoint, Failure
from serverctl.load.images import png, screenshot
from serverctl.load.window import Snapshot

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
SMALL = {"sizes": ((64, 64),), "text_tokens": 60, "max_tokens": 4, "requests": 6}


def target_of(server: TokenServer) -> Endpoint:
    return Endpoint(f"{server.url}/v1", KEY, MODEL)


async def bench(server: TokenServer, **changes: Any) -> Report:
    options = {name: changes.pop(name) for name in ("stop", "max_seconds", "progress") if name in changes}
    return await measure("server", target_of(server), Workload(**{**SMALL, **changes}), **options)


def prefix(text: str) -> str:
    return text[:16]


# ------------------------------------------------------------------------------------------------------ statistics


def test_a_summary_says_how_many_values_it_has() -> None:
    summary = summarize([3.0, 1.0, 2.0])
    assert summary is not None
    assert (summary.n, summary.mean, summary.p50, summary.min, summary.max) == (3, 2.0, 2.0, 1.0, 3.0)
    assert (summary.p95, summary.p99) == pytest.approx((2.9, 2.98)), "between the two nearest ranks"
    assert summarize([]) is None


def test_a_spread_as_large_as_the_difference_is_noise_and_a_small_one_is_not() -> None:
    wild = compare_pairs([10.0, 30.0, 12.0, 25.0, 15.0, 28.0], [16.0, 26.0, 21.0, 20.0, 24.0, 23.0])
    calm = compare_pairs([10.0, 10.1, 10.2, 9.9, 10.0, 10.1], [11.0, 11.1, 11.2, 10.9, 11.0, 11.1])
    better = compare_pairs([11.0, 11.1, 11.2, 10.9, 11.0, 11.1], [10.0, 10.1, 10.2, 9.9, 10.0, 10.1])
    assert wild is not None
    assert calm is not None
    assert better is not None
    assert (wild.verdict, calm.verdict, better.verdict) == ("within noise", "higher", "lower")
    assert calm.low is not None
    assert calm.high is not None
    assert 1 < calm.low < calm.ratio < calm.high


@pytest.mark.parametrize(("count", "judged"), [(3, False), (4, False), (5, True)])
def test_a_verdict_needs_five_samples_on_both_sides(count: int, judged: bool) -> None:
    few, many = [10.0, 10.1, 10.2, 9.9, 10.0][:count], [20.0, 20.1, 20.2, 19.9, 20.0, 20.1]
    assert compare_pairs([], many) is None
    for difference in (compare_pairs(few, many), compare_pairs(many, few)):
        assert difference is not None
        assert difference.ratio == pytest.approx(2, rel=0.01) or difference.ratio == pytest.approx(0.5, rel=0.01)
        assert (difference.verdict != "too few samples") is judged
        assert (difference.low is not None) is judged


@pytest.mark.parametrize(("requests", "together"), [(16, 4), (20, 4), (32, 8), (20, 1)])
def test_equal_servers_on_a_busy_machine_are_rarely_told_apart(requests: int, together: int) -> None:
    """Whatever else the machine does meets all requests that are under way: it is no evidence sixteen times over."""
    dice = np.random.default_rng(7)

    def times() -> list[float]:
        busy = np.repeat(dice.lognormal(0, 0.3, -(-requests // together)), together)[:requests]
        return [float(one) for one in 100 * busy * dice.lognormal(0, 0.1, requests)]

    found = [compare_pairs(times(), times(), together) for _ in range(300)]
    told = sum(one is not None and one.verdict != "within noise" for one in found)
    assert told <= 0.1 * len(found)
    fifth = compare_pairs(times(), [one / 5 for one in times()], together)
    assert fifth is not None
    assert fifth.verdict == "lower"


# ------------------------------------------------------------------------------------------------------- workload


def test_the_same_key_draws_the_same_screenshot_and_another_key_another_one() -> None:
    first = png(screenshot("a", 640, 480))
    assert first == png(screenshot("a", 640, 480))
    assert first != png(screenshot("b", 640, 480))


def test_a_screenshot_is_no_plain_colour() -> None:
    image = screenshot("a", 1280, 720)
    assert image.size == (1280, 720)
    assert len(png(image)) > 1280 * 720 // 5  # real screenshots: a fifth of a byte a pixel and more
    assert len(image.resize((320, 180)).getcolors(320 * 180) or []) > 1000


@pytest.mark.parametrize("size", [(32, 32), (32, 2000), (2000, 40)])
def test_screenshots_of_odd_sizes_can_be_drawn(size: tuple[int, int]) -> None:
    assert screenshot("a", *size).size == size


def test_cold_requests_share_neither_their_first_words_nor_a_picture_also_in_another_run() -> None:
    workload = Workload(**SMALL, images=2)
    cold, warm = Setting(64, 64, 2, 1, "cold"), Setting(64, 64, 2, 1, "warm")
    assert workload.messages(warm, 0, "x") == workload.messages(warm, 5, "x"), "warm requests are all the same"
    chats = [workload.messages(cold, number, run) for run in ("x", "y") for number in (-1, 0, 1, 2)]
    beginnings = {prefix(chat[0]["content"]) for chat in chats}
    pictures = [url for chat in chats for url in images({"messages": chat})]
    assert len(beginnings) == len(chats)
    assert len(set(pictures)) == len(pictures) == 2 * len(chats)


def test_what_clients_repeat_is_repeated_within_a_run_and_new_to_the_server_with_the_next() -> None:
    workload = Workload(**{**SMALL, "text_tokens": 400}, images=2, repeated_text=0.5, repeated_images=0.7, cache="cold")
    setting = next(workload.settings())
    assert setting.cache == "replayed"
    chats = [workload.messages(setting, number, "x") for number in range(10)]
    beginnings = {" ".join(chat[0]["content"].split()[:180]) for chat in chats}
    assert len(beginnings) == 1
    assert len({chat[0]["content"] for chat in chats}) == 10
    pictures = [url for chat in chats for url in images({"messages": chat})]
    assert len(pictures) - len(set(pictures)) == 14 - 2, "fourteen of twenty are two again and again"
    other = workload.messages(setting, 0, "y")
    assert prefix(other[0]["content"]) != prefix(chats[0][0]["content"])
    assert not {*images({"messages": other})} & {*pictures}


def test_the_text_is_about_as_long_as_asked() -> None:
    setting = Setting(64, 64, 0, 1, "cold")
    lengths = [len(texts({"messages": Workload(text_tokens=n).messages(setting, 0, "x")})[0].split()) for n in (0, 500)]
    assert lengths[0] == 1
    assert 480 <= lengths[1] <= 500


@pytest.mark.parametrize(
    "wrong",
    [
        {"requests": 3, "concurrency": (1, 4)},
        {"concurrency": (0,)},
        {"concurrency": ()},
        {"sizes": ()},
        {"sizes": ((10, 10),)},
        {"max_tokens": 1},
        {"images": -1},
        {"text_tokens": -1},
        {"requests": 100_000},
    ],
)
def test_a_workload_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as raised:
        Workload(**wrong)
    assert raised.value.remedy


# ------------------------------------------------------------------------------------------------------ measuring


async def test_every_setting_is_measured_with_so_many_requests_and_one_more_before() -> None:
    with TokenServer() as server:
        report = await bench(server, sizes=((64, 64), (96, 64)), concurrency=(1, 2))
    assert [str(one.setting) for one in report.measurements] == [
        f"1 x {size}, {at_once} at once, {cache}"
        for cache in ("cold", "warm")
        for size in ("64x64", "96x64")
        for at_once in (1, 2)
    ]
    assert [len(one.samples) for one in report.measurements] == [6] * 8
    assert len(server.chats) == 8 * (6 + 1)
    assert report.cut is None
    assert report.failed == 0


async def test_requests_have_pictures_of_the_size_and_ask_for_answers_of_one_length_with_usage() -> None:
    with TokenServer() as server:
        await bench(server, sizes=((160, 96),), images=3, cache="cold", requests=1)
    for url in (urls := images(server.chats[-1])):
        with Image.open(io.BytesIO(b64decode(url.partition(",")[2]))) as image:
            assert image.size == (160, 96)
    assert len(urls) == 3
    for chat in server.chats:
        assert (chat["temperature"], chat["max_tokens"], chat["stream"]) == (0, 4, True)
        assert chat["stream_options"] == {"include_usage": True}
        assert chat["ignore_eos"] is True


async def test_latencies_stand_in_order_and_a_slower_server_has_larger_ones() -> None:
    with TokenServer() as fast, TokenServer(traits=Traits(ttft_s=0.15, gap_s=0.05)) as slow:
        reports = [await bench(server, cache="warm", requests=3) for server in (fast, slow)]
    for report in reports:
        for sample in report.measurements[0].samples:
            assert sample.ttft_ms is not None
            assert sample.tpot_ms is not None
            assert 0 < sample.ttft_ms <= sample.total_ms
            assert sample.tpot_ms == pytest.approx((sample.total_ms - sample.ttft_ms) / 3)
    quick, late = (report.measurements[0] for report in reports)
    for latency in ("ttft_ms", "tpot_ms", "total_ms"):
        assert min(late.values(latency)) > min(quick.values(latency))
    assert min(late.values("ttft_ms")) >= 150


async def test_tokens_are_the_servers_own_count_and_rates_are_by_the_time_the_setting_took() -> None:
    with TokenServer(traits=Traits(ttft_s=0.02)) as server:
        report = await bench(server, cache="warm")
    one = report.measurements[0]
    assert one.tokens("completion_tokens") == 6 * 4
    assert one.tokens("prompt_tokens") == sum(sample.prompt_tokens or 0 for sample in one.samples)
    assert one.seconds > 0
    assert one.rates["requests_per_s"] == pytest.approx(6 / one.seconds)
    assert one.rates["output_tokens_per_s"] == pytest.approx(24 / one.seconds)


async def test_cold_is_cold_and_warm_is_warm_by_the_servers_own_count() -> None:
    with TokenServer() as server:
        first = await bench(server, requests=4, text_tokens=300)
        again = await bench(server, requests=4, text_tokens=300)  # the same seed, on the same server
    for report in (first, again):
        cold, warm = report.measurements
        assert cold.cached_ratio == 0
        assert cold.server.mm_hit_rate == 0
        assert cold.server.prefix_hit_rate == 0
        assert warm.cached_ratio == 1
        assert warm.server.mm_hit_rate == 1
        assert not report.all_notes


async def test_progress_counts_up_to_the_total() -> None:
    told: list[Progress] = []
    with TokenServer(traits=Traits(ttft_s=0.1)) as server:
        await bench(server, progress=told.append, concurrency=(3,))
    assert server.seen.most_in_flight == 3, "as many at once as asked for, and never more"
    done = [progress.done for progress in told if progress.phase == "measuring"]
    assert done == sorted(done)
    assert (done[-1], told[-1].total) == (12, 12)


# ------------------------------------------------------------------------------------------------------- unknown


async def test_what_the_server_does_not_tell_is_unknown_and_not_zero() -> None:
    with TokenServer(traits=Traits(usage=False, metrics=False)) as server:
        report = await bench(server, cache="cold")
    one = report.measurements[0]
    assert one.server == ServerSide()
    assert (one.tokens("prompt_tokens"), one.tokens("completion_tokens"), one.cached_ratio) == (None, None, None)
    assert one.values("tpot_ms") == []
    assert len(one.values("ttft_ms")) == 6
    assert any("token counts" in note for note in report.notes)
    document = report.to_json()["measurements"][0]
    assert document["tpot_ms"] is None
    assert document["output_tokens_per_s"] is None
    assert document["server"]["mm_hit_rate"] is None


async def test_without_details_in_the_answers_the_cached_part_comes_from_the_metrics() -> None:
    with TokenServer(traits=Traits(details=False)) as server:
        report = await bench(server, cache="warm", text_tokens=300)
    one = report.measurements[0]
    assert [sample.cached_tokens for sample in one.samples] == [None] * 6
    assert one.cached_ratio == one.server.prefix_hit_rate == 1


def test_a_missing_metric_is_unknown_and_so_is_one_that_went_down() -> None:
    def counted(**counters: float) -> Snapshot:
        return Snapshot(0, counters)

    before = counted(prefix_hits=10, prefix_queries=100, preemptions=5)
    assert server_side(None, before) == ServerSide()
    assert server_side(before, None) == ServerSide()
    assert server_side(before, counted(prefix_hits=20)).prefix_hit_rate is None
    assert server_side(before, counted(prefix_hits=20, prefix_queries=200)).prefix_hit_rate == pytest.approx(0.1)
    assert server_side(before, before).prefix_hit_rate is None  # nothing was looked up
    restarted = replace(server_side(before, counted(prefix_hits=1, prefix_queries=2, preemptions=0)), requests=None)
    assert restarted == ServerSide()


# ------------------------------------------------------------------------------------------------------- trouble


@pytest.mark.parametrize(
    ("unknown", "tokens", "noted"),
    [
        (("ignore_eos",), 24, "differ in length"),  # usage is still asked for
        (("ignore_eos", "stream_options"), None, "token counts"),
    ],
)
async def test_a_server_that_refuses_options_is_measured_without_them_and_the_report_says_so(
    unknown: tuple[str, ...], tokens: int | None, noted: str
) -> None:
    with TokenServer(traits=Traits(unknown=unknown)) as server:
        report = await bench(server, cache="warm")
    assert (report.failed, len(report.measurements[0].good)) == (0, 6)
    assert report.measurements[0].tokens("completion_tokens") == tokens
    assert any(noted in note for note in report.notes)


async def test_a_hiccup_before_the_first_measured_request_does_no_harm() -> None:
    with TokenServer(lambda number, _b: Refuse(500, "oops") if number == 0 else None) as server:
        report = await bench(server, cache="warm")
    assert len(report.measurements[0].good) == 6
    assert all(chat["ignore_eos"] for chat in server.chats)


async def test_failures_are_counted_by_kind_and_have_no_part_in_latencies() -> None:
    def behave(number: int, _body: dict[str, Any]) -> Any:
        return {2: Refuse(500, "oops"), 4: Refuse(400, "too odd")}.get(number)

    with TokenServer(behave) as server:
        report = await bench(server, cache="warm")
    one = report.measurements[0]
    assert one.errors == {"server_error": 1, "refused": 1}
    assert (len(one.samples), len(one.good), report.failed) == (6, 4, 2)
    assert len(one.values("ttft_ms")) == 4


@pytest.mark.parametrize(
    ("cache", "cached", "server", "noted"),
    [
        ("cold", 60, ServerSide(), "cold was not cold: 60%"),
        ("warm", 40, ServerSide(), "warm was not warm: only 40%"),
        ("warm", 100, ServerSide(preemptions=3.0), "the KV cache was too small: 3 preemptions"),
        ("warm", 100, ServerSide(), "1 of 1 answers are shorter than 8 tokens"),
    ],
)
def test_what_limits_the_meaning_of_a_measurement_is_noted(
    cache: Any, cached: int, server: ServerSide, noted: str
) -> None:
    sample = Sample(0, 1, 2, 100, 4, cached)
    one = Measurement(Setting(64, 64, 1, 1, cache), (sample,), 1.0, server, asked=8)
    assert any(noted in note for note in one.notes())


async def test_requests_of_others_are_mentioned() -> None:
    def behave(number: int, _body: dict[str, Any]) -> Any:
        server.seen.finished += number == 3  # somebody else's, at the same time
        return None

    with TokenServer(behave) as server:
        report = await bench(server, cache="warm")
    assert any("1 request of others" in note for note in report.all_notes)


async def test_a_workload_that_the_server_refuses_is_an_error_with_its_reason() -> None:
    refusal = Refuse(400, "At most 1 image(s) may be provided in one prompt.")
    with TokenServer(lambda _n, _b: refusal) as server, pytest.raises(MaiError, match="at most 1 images") as raised:
        await bench(server, images=2)
    assert raised.value.remedy


async def test_one_setting_that_is_refused_leaves_the_others_measured() -> None:
    def behave(_number: int, body: dict[str, Any]) -> Any:
        with Image.open(io.BytesIO(b64decode(images(body)[0].partition(",")[2]))) as image:
            return Refuse(400, "maximum context length is 10 tokens") if image.width > 64 else None

    with TokenServer(behave) as server:
        report = await bench(server, sizes=((64, 64), (128, 64)), cache="cold")
    assert [one.setting.width for one in report.measurements] == [64]
    assert any("128x64" in note and "context" in note for note in report.notes)


async def test_a_server_that_dies_is_an_error_that_keeps_what_was_measured() -> None:
    # The cold setting takes 7 requests, the warm one dies at its third.
    server = TokenServer(lambda number, _b: Die() if number == 10 else None)
    with server, pytest.raises(ServerDiedError, match="died") as raised:
        await bench(server)
    report = raised.value.report
    assert raised.value.exit_status == ExitStatus.ENVIRONMENT
    assert [(one.setting.cache, len(one.good), one.complete) for one in report.measurements] == [
        ("cold", 6, True),
        ("warm", 2, False),
    ]
    assert report.measurements[1].errors == {"unreachable": 1}
    assert report.measurements[1].server == ServerSide()
    assert report.cut is not None
    assert report.cut.kind == "server"


async def test_a_dead_engine_behind_a_living_http_server_is_a_dead_server() -> None:
    def behave(number: int, _body: dict[str, Any]) -> Any:
        if number < 3:
            return None
        server.traits.dead_engine = True
        return Refuse(500, "EngineCore encountered an issue")

    with TokenServer(behave) as server, pytest.raises(ServerDiedError) as raised:
        await bench(server, cache="warm")
    assert len(raised.value.report.measurements[0].good) == 2


async def test_a_stop_keeps_what_was_measured_and_says_that_it_was_cut() -> None:
    stop = asyncio.Event()

    def progress(told: Progress) -> None:
        if told.done == 3:
            stop.set()

    with TokenServer(lambda number, _b: Hang() if number == 4 else None) as server:
        report = await bench(server, cache="warm", stop=stop, progress=progress)
    assert report.cut is not None
    assert report.cut.kind == "stopped"
    assert [(len(one.good), one.complete) for one in report.measurements] == [(3, False)]
    assert report.failed == 0  # what was under way is no error


async def test_the_time_limit_ends_a_run_that_would_never_end() -> None:
    with TokenServer(lambda number, _b: Hang() if number == 4 else None) as server:
        report = await bench(server, cache="warm", max_seconds=5.0)
    assert report.cut is not None
    assert report.cut.kind == "time"
    assert len(report.measurements[0].good) == 3


async def test_a_server_on_another_machine_is_measured_only_when_that_is_allowed() -> None:
    elsewhere = Endpoint("http://203.0.113.1:8000/v1", "", "m")
    with pytest.raises(UsageError, match="not on this machine"):
        await measure("server", elsewhere, Workload(**SMALL))


# -------------------------------------------------------------------------------------------------------- reports


def made_up(name: str, scale: float, **changes: Any) -> Report:
    workload = Workload(**SMALL, cache="cold")
    (setting,) = workload.settings()
    samples = tuple(Sample(0, scale * (100 + i), scale * (200 + i), 50, 4, 0, number=i, **changes) for i in range(6))
    return Report(name, "m", "http://x/v1", workload, "run", (Measurement(setting, samples, scale, ServerSide(), 4),))


def rendered(*reports: Report) -> str:
    console = Console(file=io.StringIO(), width=80, highlight=False)
    if len(reports) > 1:
        print_comparison(reports, console)
    else:
        print_report(reports[0], console)
    assert isinstance(console.file, io.StringIO)
    return " ".join(console.file.getvalue().split())


def test_the_tables_show_numbers_samples_and_what_is_unknown() -> None:
    text = rendered(made_up("latency", 1.0))
    assert "102.5" in text  # the median first token
    assert "…" not in text  # 80 columns are enough for every number
    assert "n = 6" in text
    assert "?" in text  # image cache: unknown
    assert "numpy" in text  # how percentiles are defined


def test_a_report_is_whole_json() -> None:
    document = json.loads(json.dumps(made_up("latency", 1.0).to_json()))
    (one,) = document["measurements"]
    assert one["ttft_ms"]["n"] == 6
    assert one["ttft_ms"]["p50"] == pytest.approx(102.5)
    assert len(one["samples"]) == 6
    assert one["requests_per_s"] == 6
    assert document["definitions"]["percentiles"]


def test_a_comparison_has_ratios_against_the_first_and_verdicts() -> None:
    reports = (made_up("latency", 1.0), made_up("balanced", 2.0), made_up("same", 1.0))
    rows = {row.quantity: row.differences for row in compared(reports)}
    assert [one and one.ratio for one in rows["ttft_ms"]] == [None, pytest.approx(2.0), 1.0]
    assert [one and one.verdict for one in rows["ttft_ms"]] == [None, "higher", "within noise"]
    assert [one and one.ratio for one in rows["requests_per_s"]] == [None, pytest.approx(0.5), 1.0]
    text = rendered(*reports)
    assert "x2.00" in text
    assert "within noise" in text
    assert "busier during one of the blocks" in text
    document = json.loads(json.dumps(comparison_json(reports)))
    assert document["rows"][0]["against_first"]["balanced"]["verdict"] == "higher"
    assert document["rows"][3]["against_first"]["same"] == {"ratio": 1.0}, "rates have no interval"


def test_a_setting_that_one_server_could_not_do_is_unknown_there() -> None:
    failure = Failure("refused", "no")
    reports = (made_up("a", 1.0), made_up("b", 1.0, failure=failure))
    row = next(compared(reports))
    assert row.values[1] is None
    assert row.differences[1] is None
    assert "?" in rendered(*reports)


# -------------------------------------------------------------------------------------------------------- command

QUICK = ("--size", "64x64", "--text-tokens", "20", "--max-tokens", "3", "--requests", "3")


def test_the_command_prints_json_and_never_the_key(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    with TokenServer() as server:
        status = command.main([*QUICK, "--endpoint", server.url, "--api-key", KEY, "--json", "--out", str(out)])
    printed = capsys.readouterr()
    assert status == ExitStatus.DONE
    document = json.loads(printed.out)
    assert document == json.loads(out.read_text())
    assert [one["answered"] for one in document["measurements"]] == [3, 3]
    assert KEY not in printed.out + printed.err


def test_results_that_cannot_be_written_are_printed_all_the_same(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="no folder"):
        command.main([*QUICK, "--endpoint", "127.0.0.1:9", "--out", str(tmp_path / "none" / "report.json")])
    with TokenServer() as server:
        asked = (*QUICK, "--endpoint", server.url, "--api-key", KEY, "--json", "--out", str(tmp_path))
        assert command.main([*asked]) == ExitStatus.ENVIRONMENT
    printed = capsys.readouterr()
    assert [one["answered"] for one in json.loads(printed.out)["measurements"]] == [3, 3]
    assert "cannot be written" in printed.err


def test_failed_requests_are_an_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    with TokenServer(lambda number, _b: Refuse(500, "oops") if number == 2 else None) as server:
        assert command.main([*QUICK, "--endpoint", server.url, "--api-key", KEY]) == ExitStatus.NOT_DONE
    assert "1 server_error. The server failed (500): oops." in capsys.readouterr().out


def test_a_wrong_key_and_no_server_lack_something() -> None:
    with TokenServer() as server, pytest.raises(EnvironmentLacksError, match="key"):
        command.main([*QUICK, "--endpoint", server.url, "--api-key", "wrong"])
    with pytest.raises(EnvironmentLacksError, match="no server") as raised:
        command.main([*QUICK, "--endpoint", "127.0.0.1:9"])
    assert "mai-server up" in raised.value.remedy


def test_a_dying_server_prints_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    with TokenServer(lambda number, _b: Die() if number == 6 else None) as server:
        status = command.main([*QUICK, "--endpoint", server.url, "--api-key", KEY, "--json"])
    printed = capsys.readouterr()
    assert status == ExitStatus.ENVIRONMENT
    document = json.loads(printed.out)
    assert [one["answered"] for one in document["measurements"]] == [3, 1]
    assert document["cut"]["kind"] == "server"
    assert "died" in printed.err


@pytest.mark.parametrize(
    "wrong",
    [
        ("--compare", "latency"),
        ("--compare", "latency,no-such-preset"),
        ("--compare", "latency", "max_num_seqs=no"),
        ("--compare", "latency", "latency+no_such_setting=1"),
        ("--compare", "latency", "balanced", "--rounds", "0"),
        ("--replay", "/no/such/run"),
        ("--compare", "latency,balanced", "--endpoint", "127.0.0.1:1"),
        ("--size", "big"),
        ("--concurrency", "many"),
        ("--max-seconds", "0"),
        ("--api-key", "x"),
    ],
)
def test_a_wrong_command_line_starts_nothing(wrong: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "started", lambda *_: pytest.fail("a server was started"))
    with pytest.raises(UsageError):
        command.main(list(wrong))


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was started and stopped; with max_num_seqs 2 a server dies early, with 1 it does not start."""
    log: list[str] = []

    @contextmanager
    def started(side: command.Contender, model: str | None) -> Iterator[Endpoint]:
        if side.overrides.get("max_num_seqs") == 1:
            raise EnvironmentLacksError("The card is too small.", "Take another one.")
        dies = side.overrides.get("max_num_seqs") == 2
        log.append(f"start {side.preset} {model}")
        with TokenServer(lambda number, _b: Die() if dies and number == 2 else None) as server:
            yield target_of(server)
        log.append(f"stop {side.preset}")

    monkeypatch.setattr(command, "started", started)
    return log


def test_presets_are_started_in_turn_and_compared(log: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([*QUICK, "--compare", "latency,balanced", "--model", "M", "--json"]) == ExitStatus.DONE
    latency = ["start latency M", "stop latency"]
    assert log == [*latency, "start balanced M", "stop balanced", *latency], "A B, then B A, without starting B again"
    document = json.loads(capsys.readouterr().out)
    assert document["names"] == ["latency", "balanced"]
    assert all("balanced" in row["against_first"] for row in document["rows"])
    assert [one["answered"] for report in document["reports"] for one in report["measurements"]] == [3, 3, 3, 3]
    assert document["verdicts"]["balanced"]["judgement"] == "cannot tell", "three requests prove nothing"


def test_a_preset_that_dies_or_does_not_start_leaves_the_report_of_the_one_before(
    log: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    line = [*QUICK, "--rounds", "1", "--json", "--compare", "latency"]
    assert command.main([*line, "balanced+max_num_seqs=2"]) == ExitStatus.ENVIRONMENT
    first, second = json.loads(capsys.readouterr().out)["reports"]
    assert [one["answered"] for one in first["measurements"]] == [3, 3]
    assert second["cut"]["kind"] == "server"
    assert command.main([*line, "balanced+max_num_seqs=1"]) == ExitStatus.ENVIRONMENT
    printed = capsys.readouterr()
    assert json.loads(printed.out)["names"] == ["latency"]
    assert "The card is too small." in printed.err
    with pytest.raises(EnvironmentLacksError):
        command.main([*QUICK, "--compare", "balanced+max_num_seqs=1", "latency"])


def test_ctrl_c_prints_what_was_measured_and_says_that_it_was_cut() -> None:
    with TokenServer(lambda number, _b: Hang() if number == 3 else None) as server:
        process = subprocess.Popen(
            [sys.executable, "-m", "serverctl", "bench", *QUICK, "--endpoint", server.url, "--json"],
            env={**os.environ, "PYTHONPATH": str(ROOT), "MAI_AGENT_API_KEY": KEY},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            while len(server.chats) < 4 and process.poll() is None:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == ExitStatus.STOPPED, err
    assert "Traceback" not in err
    document = json.loads(out)
    assert document["cut"]["kind"] == "stopped"
    assert [one["answered"] for one in document["measurements"]] == [2]
