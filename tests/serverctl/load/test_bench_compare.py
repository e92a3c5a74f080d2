"""Comparing servers by the same requests, and recorded runs as what is sent."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from stubs.token_server import KEY, TokenServer, images

from foundation.errors import ExitStatus, UsageError
from serverctl.commands.load import bench as command
from serverctl.load.bench.compare import verdicts
from serverctl.load.bench.replay import Replay, read_run
from serverctl.load.bench.report import Measurement, Report, Sample, ServerSide
from serverctl.load.bench.workload import Setting, Workload

pytestmark = pytest.mark.slow

SHORT = ["--size", "64x64", "--requests", "8", "--max-tokens", "3", "--text-tokens", "20", "--cache", "cold"]


def test_two_servers_that_run_get_the_same_requests_in_alternating_blocks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MAI_AGENT_API_KEY", KEY)
    order: list[str] = []

    def noting(name: str) -> Any:
        return lambda _number, _body: order.append(name)

    with TokenServer(noting("A")) as first, TokenServer(noting("B")) as second:
        assert command.main([*SHORT, "--compare", first.url, second.url, "--json"]) == ExitStatus.DONE
        sent = [[chat["messages"] for chat in server.chats] for server in (first, second)]
    assert "".join(order) == "A" * 5 + "B" * 10 + "A" * 5, "a block is a warm-up and half the requests"
    assert sent[0] == sent[1]
    document = json.loads(capsys.readouterr().out)
    assert document["names"] == [first.url, second.url]
    assert list(document["verdicts"]) == [second.url]


def test_sides_of_a_comparison_are_presets_settings_and_addresses() -> None:
    sides = command.parse_contenders(["latency+max_num_seqs=4", "images=2+max_num_seqs=3", "127.0.0.1:8001", "running"])
    assert [(side.preset, side.overrides, side.runs) for side in sides] == [
        ("latency", {"max_num_seqs": 4}, False),
        (None, {"images": 2, "max_num_seqs": 3}, False),
        (None, {}, True),
        (None, {}, True),
    ]
    assert str(sides[2].url).startswith("http://127.0.0.1:8001")


def report(name: str, small: float, large: float) -> Report:
    measured = tuple(
        Measurement(
            Setting(64, 64, images, 1, "cold"),
            tuple(Sample(0.0, 1.0, base + number / 10, number=number) for number in range(6)),
            1.0, ServerSide(), 4,
        )
        for images, base in ((1, small), (3, large))
    )  # fmt: skip
    return Report(name, "m", "http://127.0.0.1:1/v1", Workload(), "run", measured)


def test_a_side_that_is_named_twice_is_a_test_of_the_comparison() -> None:
    sides = command.parse_contenders(["latency", "balanced", "latency"])
    assert [(side.name, side.preset) for side in sides] == [
        ("latency", "latency"), ("balanced", "balanced"), ("latency (again)", "latency"),
    ]  # fmt: skip
    assert all(side.runs for side in command.parse_contenders(["running", "running"]))
    (same,) = verdicts((report("latency", 10, 10), report("latency (again)", 10, 10)))
    assert same.judgement == "cannot tell"
    (noisy,) = verdicts((report("latency", 10, 10), report("latency (again)", 5, 5)))
    assert noisy.judgement == "cannot tell"
    assert "too busy now to compare anything" in noisy.because


def test_settings_that_pull_apart_are_no_verdict() -> None:
    def judgement(small: float, large: float) -> str:
        return verdicts((report("a", 10, 10), report("b", small, large)))[0].judgement

    assert judgement(5, 20) == "it depends"
    assert judgement(5, 10) == "better"
    assert judgement(10, 20) == "worse"
    assert judgement(10, 10) == "cannot tell"


# -------------------------------------------------------------------------------------------------------- replays


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A run bundle of four steps, the last without a screenshot, and a line that a crash cut off."""
    (tmp_path / "screens").mkdir()
    steps = []
    for number in range(1, 5):
        file = f"screens/{number:04}.png"
        if number < 4:
            Image.new("RGB", (64, 48), (number, 0, 0)).save(tmp_path / file)
        steps.append(
            {
                "step": number, "at": 2.0 * number, "images": [{"file": file}],
                "answers": [{"raw": f"answer {number}"}], "tokens": {"completion": 2 + number},
                "milliseconds": {"model": 1700.0},
            }
        )  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps({"instruction": "open settings"}))
    (tmp_path / "steps.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps) + '{"step": 5, "at')
    return tmp_path


def test_a_recorded_run_is_sent_again_with_its_screenshots_history_lengths_and_pauses(recorded: Path) -> None:
    replay = Replay((read_run(recorded),), requests=5, text_tokens=20)
    assert replay.groups == [(0, 1, 2), (3, 4, 5)], "whole runs, as often as it takes"
    assert [replay.answer_tokens(number) for number in range(3)] == [3, 4, 5]
    assert [replay.pause_after(number) for number in range(3)] == [pytest.approx(0.3), pytest.approx(0.3), 0.0]
    (setting,) = replay.settings()
    chat = replay.messages(setting, 2, "x")
    roles = [message["role"] for message in chat]
    assert roles == ["system", "user", "user", "assistant", "user", "assistant", "user"]
    assert chat[1]["content"] == "open settings"
    assert chat[3]["content"] == "answer 1"
    assert len(images({"messages": chat})) == 3
    assert replay.messages(setting, 1, "x")[:5] == chat[:5], "a run's own history is what the server has just seen"


def test_a_repetition_is_new_from_its_first_word_and_pixel_on(recorded: Path) -> None:
    replay = Replay((read_run(recorded),), requests=6, text_tokens=20)
    (setting,) = replay.settings()
    first, again = (replay.messages(setting, number, "x") for number in (0, 3))
    assert first[0]["content"][:16] != again[0]["content"][:16]
    assert images({"messages": first}) != images({"messages": again})


def test_old_screenshots_go_in_blocks_so_that_the_beginning_stays(recorded: Path) -> None:
    replay = Replay((read_run(recorded),), requests=3, images=2, text_tokens=20)
    (setting,) = replay.settings()
    counts = [len(images({"messages": replay.messages(setting, number, "x")})) for number in range(3)]
    assert counts == [1, 2, 1]


def test_a_bundle_cannot_name_files_that_are_not_its_own(
    recorded: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("elsewhere") / "secret.png"
    Image.new("RGB", (64, 48)).save(outside)
    lines = [{"images": [{"file": str(outside)}]}, {"images": [{"file": "../secret.png"}]}, {"image": "x"}]
    (recorded / "steps.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(UsageError, match="screenshot"):
        read_run(recorded)
    with pytest.raises(UsageError, match="no recorded run"):
        read_run(recorded / "screens")


def test_numbers_that_a_bundle_lacks_count_as_none(recorded: Path) -> None:
    text = (recorded / "steps.jsonl").read_text()
    text = text.replace('"completion": 3', '"completion": "x"').replace('"at": 4.0', '"at": null')
    (recorded / "steps.jsonl").write_text(text)
    first, second, _ = read_run(recorded).steps
    assert (first.answer_tokens, first.pause_s) == (64, 0.0)
    assert second.answer_tokens == 4


def test_a_screenshot_that_is_no_picture_is_named(recorded: Path) -> None:
    (recorded / "screens" / "0001.png").write_text("a page of an error")
    replay = Replay((read_run(recorded),), requests=1)
    with pytest.raises(UsageError, match=r"0001\.png is no picture"):
        next(replay.settings())


def test_a_replay_measures_through_the_command_line(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with TokenServer() as server:
        line = ["--replay", str(recorded), "--requests", "5", "--pause", "0", "--text-tokens", "20"]
        assert command.main([*line, "--endpoint", server.url, "--api-key", KEY, "--json"]) == ExitStatus.DONE
    document = json.loads(capsys.readouterr().out)
    (measured,) = document["measurements"]
    assert (measured["answered"], measured["setting"]["cache"]) == (6, "replayed")
    assert document["workload"]["runs"] == [{"name": recorded.name, "instruction": "open settings", "steps": 3}]
    assert [chat["max_tokens"] for chat in server.chats[1:4]] == [3, 4, 5]
