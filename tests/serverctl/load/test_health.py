"""A server's numbers held against targets, from recorded metrics, made-up ones, and cards that NVML tells of."""

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from stubs.http_stub import HttpStub

from serverctl.endpoint import server_load
from serverctl.hardware.nvidia import GpuUse, gpu_use
from serverctl.load.health import Judged, judge, targets, worst
from serverctl.load.metrics import Latency, ServerMetrics, parse_metrics, parse_window
from serverctl.process.state import Folder, State
from serverctl.watch import Watch

RECORDED = (Path(__file__).parents[1] / "data" / "metrics" / "vllm-0.32.0.txt").read_text(encoding="utf-8")
GIB = 1024**3


def latency(seconds: float) -> Latency:
    return Latency(seconds, seconds, seconds, 10)


def named(found: tuple[Judged, ...]) -> dict[str, Judged]:
    return {each.name: each for each in found}


def test_the_targets_are_those_of_the_guides() -> None:
    wanted = targets()
    assert (wanted.first_token_s, wanted.tokens_per_s, wanted.kv_usage) == (0.5, 20, 0.7)


def test_what_meets_its_target_is_good_and_asks_for_nothing() -> None:
    fine = ServerMetrics(
        ttft=latency(0.4), per_token=latency(0.04), waiting=0, running=1, kv_usage=0.3, prefix_hits=80,
        prefix_queries=100, image_hits=1, image_queries=2,
    )  # fmt: skip
    found = named(judge(fine, (GpuUse(0, "L4", "GPU-1", 0.93, 20 * GIB, 22 * GIB),), 25.0))
    assert {name for name, each in found.items() if each.good} == {
        "first token", "each request", "queue", "KV cache", "prefix cache", "GPU 0",
    }  # fmt: skip
    assert all(each.advice == "" for each in found.values())
    assert found["GPU 0"].value == "93% busy, 20.0 of 22.0 GiB"
    assert found["all requests"].value == "25.0 tokens/s"
    assert worst(tuple(found.values())) is None


@pytest.mark.parametrize(
    ("metrics", "name", "advice"),
    [
        (ServerMetrics(ttft=latency(2), queue=latency(1.5)), "first token", "waiting for a slot"),
        (ServerMetrics(ttft=latency(2), prefix_hits=1, prefix_queries=100), "first token", "computed anew"),
        (ServerMetrics(ttft=latency(2), prefix_hits=90, prefix_queries=100), "first token", "smaller screenshots"),
        (ServerMetrics(per_token=latency(0.1), running=4), "each request", "share the card"),
        (ServerMetrics(per_token=latency(0.1), running=1), "each request", "bandwidth"),
        (ServerMetrics(waiting=3, running=1, kv_usage=0.1), "queue", "--set max_num_seqs=6"),
        (ServerMetrics(waiting=3, running=1, kv_usage=0.95), "queue", "cache is full"),
        (ServerMetrics(waiting=3, running=None, kv_usage=0.95), "queue", "mai-server tune"),
        (ServerMetrics(kv_usage=0.71), "KV cache", "no danger"),
        (ServerMetrics(prefix_hits=1, prefix_queries=100), "prefix cache", "--history block"),
    ],
)
def test_what_misses_its_target_says_what_to_do_by_what_else_is_seen(
    metrics: ServerMetrics, name: str, advice: str
) -> None:
    found = named(judge(metrics))[name]
    assert found.good is False
    assert advice in found.advice
    assert "wanted" in str(found)


def test_what_is_unknown_is_not_judged() -> None:
    assert {each.good for each in judge(ServerMetrics())} == {None}
    assert all(each.value == "?" for each in judge(ServerMetrics()))


def test_a_card_is_judged_only_while_it_has_work() -> None:
    card = GpuUse(0, "L4", "GPU-1", 0.02, None, None)
    assert named(judge(ServerMetrics(running=0), (card,)))["GPU 0"].good is None
    assert named(judge(ServerMetrics(running=1), (card,)))["GPU 0"].good is False
    unknown = GpuUse(1, "L4", "GPU-2", None, None, None)
    assert named(judge(ServerMetrics(running=1), (unknown,)))["GPU 1"].good is None


class FakeNvml(SimpleNamespace):
    """Two cards, of which the second cannot tell how busy it is."""

    NVMLError = RuntimeError

    def __init__(self) -> None:
        def rates(handle: int) -> Any:
            if handle == 1:
                raise RuntimeError("Not Supported")
            return SimpleNamespace(gpu=87)

        super().__init__(
            nvmlInit=lambda: None, nvmlShutdown=lambda: None, nvmlDeviceGetCount=lambda: 2,
            nvmlDeviceGetHandleByIndex=lambda index: index, nvmlDeviceGetUtilizationRates=rates,
            nvmlDeviceGetMemoryInfo=lambda _: SimpleNamespace(used=5 * GIB, total=22 * GIB),
            nvmlDeviceGetName=lambda _: "NVIDIA L4", nvmlDeviceGetUUID=lambda handle: f"GPU-{handle}",
        )  # fmt: skip


def test_nvml_tells_the_use_of_the_cards_that_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    first, second = gpu_use()
    assert first == GpuUse(0, "NVIDIA L4", "GPU-0", 0.87, 5 * GIB, 22 * GIB)
    assert second.busy is None
    assert gpu_use(("GPU-1",)) == (second,)
    assert gpu_use(("0",)) == (first,)


def test_without_nvml_there_are_no_cards_to_tell_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert gpu_use() == ()


def grown(text: str, times: int) -> str:
    """The recorded page as if everything that only grows had grown so many times over."""

    def line(found: re.Match[str]) -> str:
        return f"{found[1]} {float(found[3]) * times}"

    return re.sub(r"^((vllm:\w+(?:_total|_bucket|_sum|_count))\{.*\}) (\S+)$", line, text, flags=re.MULTILINE)


def test_a_window_holds_what_grew_in_it() -> None:
    window = parse_window(RECORDED, grown(RECORDED, 3))
    assert (window.generation_tokens, window.finished, window.prefix_hits) == (242, 12, 1024)
    assert window.kv_tokens == 262_144
    assert window.ttft is not None
    assert window.ttft.count == 12
    still = parse_window(RECORDED, RECORDED)
    assert still.ttft is None
    assert still.generation_tokens == 0
    anew = parse_window(grown(RECORDED, 3), RECORDED)
    assert anew.generation_tokens == parse_metrics(RECORDED).generation_tokens, "a server that was started anew"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A ready server by its state, whose /metrics is what `page.text` holds."""
    page = SimpleNamespace(text=RECORDED)

    monkeypatch.setenv("MAI_SERVER_STATE", str(tmp_path))
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    listening = HttpStub(lambda handler: handler.respond(page.text.encode()))
    state = State(name="default", phase="ready", port=listening.server_port, model="MAI-UI-2B")
    monkeypatch.setattr("serverctl.watch.current_state", lambda _: state)
    Folder("default").make()
    yield page
    listening.close()


def test_a_watch_judges_the_last_moments_and_before_them_the_time_since_the_start(server: Any) -> None:
    now = [100.0]
    watch = Watch("default", clock=lambda: now[0])
    first = watch.look()
    assert first.window_s is None
    assert named(first.judged)["first token"].value == "0.06 s"
    now[0] += 10
    idle = watch.look()
    assert idle.window_s is None, "nobody asked in these ten seconds"
    server.text = grown(RECORDED, 3)
    now[0] += 10
    busy = watch.look()
    assert busy.window_s == 20
    assert named(busy.judged)["all requests"].value == "12.1 tokens/s"
    assert busy.metrics is not None
    assert busy.metrics.generation_tokens == 363, "the metrics themselves are since the start"
    now[0] += 60
    assert watch.look().window_s is None


def test_a_heartbeat_of_one_token_is_no_request_of_an_agent(server: Any) -> None:
    now = [100.0]
    watch = Watch("default", clock=lambda: now[0])
    watch.look()
    now[0] += 10
    counted = (
        r"request_success_total(?=.*length)|generation_tokens_total|time_to_first_token_seconds_(?:bucket|count|sum)"
    )

    def one_more(found: re.Match[str]) -> str:
        return f"{found[1]} {float(found[2]) + 1}"

    server.text = re.sub(rf"^(vllm:(?:{counted})\{{.*\}}) (\S+)$", one_more, RECORDED, flags=re.MULTILINE)
    assert watch.look().window_s is None


def test_the_terminal_application_is_told_cards_and_what_to_do_first(server: Any) -> None:
    server.text = re.sub(r"^(vllm:kv_cache_usage_perc\{.*\}) .*$", r"\1 0.9", RECORDED, flags=re.MULTILINE)
    said = server_load("default")
    assert said.startswith("server ! KV cache 90%")
    assert "87% GPU 0" in said
    assert "first token 0.06 s" in said


def test_status_shows_each_number_with_its_target_and_as_json(server: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from serverctl.commands.servers.status import main

    server.text = re.sub(r"^(vllm:num_requests_waiting\{.*\}) .*$", r"\1 2", RECORDED, flags=re.MULTILINE)
    assert main(["--name", "default"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"first token +0\.06 s \(good: under 0\.5 s\)", said)
    assert re.search(r"queue +2 waiting, 0 running \(wanted: nobody waits\)\n +-> ", said)
    assert "GPU 0" in said
    assert main(["--name", "default", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["gpus"][0]["busy"] == 0.87
    assert {each["name"] for each in document["judged"]} >= {"first token", "each request", "KV cache", "prefix cache"}
