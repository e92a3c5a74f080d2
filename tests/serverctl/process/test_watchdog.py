"""An engine that hangs is noticed by its missing heartbeat; one that computes is left alone."""

from dataclasses import dataclass, field

import pytest
from stubs.controlled import Machine

from serverctl.load.client import Answer, on_loopback
from serverctl.load.metrics import ServerMetrics
from serverctl.process import probe
from serverctl.process.load_record import LoadRecord, read_record
from serverctl.process.state import Folder
from serverctl.process.supervisor.watchdog import Timeouts, Watchdog

pytestmark = pytest.mark.slow


@dataclass
class Engine:
    """An engine as its API server shows it."""

    metrics: ServerMetrics | None = field(default_factory=ServerMetrics)
    answer: Answer = field(default_factory=lambda: Answer(200, "{}"))
    asked: int = 0
    processor: float = 0.0

    def shows(self, **numbers: int | float | bool) -> None:
        self.metrics = ServerMetrics(**{"running": 0, "waiting": 0, "prompt_tokens": 0, **numbers})  # type: ignore[arg-type]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    made = Engine()
    made.shows()

    def ask(*_: object, **__: object) -> Answer:
        made.asked += 1
        return made.answer

    monkeypatch.setattr(probe, "ask_model", ask)
    monkeypatch.setattr(probe, "read_metrics", lambda *_: made.metrics)
    monkeypatch.setattr(probe, "is_healthy", lambda *_: True)
    monkeypatch.setattr("serverctl.process.supervisor.watchdog._COUNTED", 0.0)
    monkeypatch.setattr(Watchdog, "_processor_time", lambda _: made.processor)
    return made


def pulse(on_processor: bool = False, **waits: float) -> Watchdog:
    return Watchdog(on_loopback(1, "key", "m"), None, Timeouts(**waits), 0.0, on_processor)


@pytest.mark.parametrize(
    ("shows", "status", "trouble", "asked"),
    [
        ({}, 200, "", 1),
        ({}, 429, "", 1),  # a sign of life
        ({}, 500, "gave no token", 1),
        ({}, None, "gave no token", 1),
        ({"sleeping": True}, None, "", 0),
        ({"running": 1, "waiting": 3}, 200, "requests wait in the engine", 0),  # and another one would not help
    ],
)
def test_an_idle_engine_is_asked_for_a_token_and_one_that_sleeps_or_should_compute_is_not(
    engine: Engine, shows: dict[str, int], status: int | None, trouble: str, asked: int
) -> None:
    engine.shows(**shows)
    engine.answer = Answer(status, "")
    beat = pulse().beat()
    assert trouble in beat.trouble
    assert bool(beat.trouble) is bool(trouble)
    assert (engine.asked, beat.seconds is not None) == (asked, asked == 1 and not trouble)


@pytest.mark.parametrize(("on_processor", "misses"), [(True, False), (False, True)])
def test_a_token_that_a_processor_still_works_on_is_no_miss(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, on_processor: bool, misses: bool
) -> None:
    def ask(*_: object, **__: object) -> Answer:
        engine.processor += 1000.0
        return Answer(None, "TimeoutError")

    monkeypatch.setattr(probe, "ask_model", ask)
    assert bool(pulse(on_processor).beat().trouble) is misses


def test_an_engine_whose_counters_move_is_not_asked(engine: Engine) -> None:
    looks = pulse()
    looks.beat()
    engine.shows(prompt_tokens=2040, running=1)
    engine.answer = Answer(None, "TimeoutError")
    assert looks.beat().trouble == ""
    assert engine.asked == 1


def test_a_long_step_that_keeps_the_processor_busy_is_no_miss_until_it_is_stuck(engine: Engine) -> None:
    looks = pulse()
    engine.shows(running=1)
    engine.processor = 1000.0
    assert looks.beat().trouble == ""
    assert engine.asked == 0
    stuck = pulse(stall=1e-9)
    stuck.beat()
    engine.processor = 2000.0
    assert "nothing came of them" in stuck.beat().trouble


def test_a_request_that_came_first_explains_a_late_answer(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*_: object, **__: object) -> Answer:
        engine.shows(running=1, prompt_tokens=2040)
        return Answer(None, "TimeoutError")

    looks = pulse()
    looks.beat()
    monkeypatch.setattr(probe, "ask_model", ask)
    assert looks.beat().trouble == ""


def test_two_misses_in_a_row_end_it_and_a_beat_between_does_not(engine: Engine) -> None:
    watch = pulse(beat=1e-9)
    engine.answer = Answer(None, "TimeoutError")
    trouble, end = watch.look()
    assert trouble
    assert not end
    engine.answer = Answer(200, "{}")
    assert watch.look() == ("", "")
    engine.answer = Answer(None, "TimeoutError")
    watch.look()
    assert "2 heartbeats missed" in watch.look()[1]
    assert watch.heartbeat.missed == 2


def test_an_engine_that_was_only_looked_at_gets_time_before_the_second_look(engine: Engine) -> None:
    watch = pulse(beat=1000.0)
    watch._next_beat = 0.0  # as if that time had passed
    engine.shows(running=1)
    trouble, end = watch.look()
    assert trouble
    assert not end
    assert watch.heartbeat.missed == 1


def test_heartbeats_are_no_load(folder: Folder) -> None:
    record = LoadRecord(folder)

    def page(finished: int) -> str:
        return (
            f'# TYPE vllm:request_success_total counter\nvllm:request_success_total{{finished_reason="x"}} {finished}\n'
        )

    assert record.take(page(1), 0)
    for beats in (1, 2, 3):
        assert not record.take(page(1 + beats), beats)  # nobody has used the server
    assert len(read_record(folder)) == 1
    assert record.take(page(7), 4)  # two of them, and one of ours
    assert [snapshot.counters["finished"] for snapshot in read_record(folder)] == [1, 4, 7]
    assert record.take(None), "where nothing is known, it may be in use"


def test_status_shows_the_heartbeat(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAI_SERVER_BEAT_SECONDS", "0.2")
    state = machine.up()
    while state.heartbeat is None or not state.heartbeat.asked:
        state = machine.wait("default", "ready", "failed")
    assert state.heartbeat.missed == 0
    assert "heartbeat" in machine.run("status").stdout


@pytest.mark.parametrize(("does", "waits"), [("deaf", {"DEAF": "4"}), ("hung", {"BEAT": "0.5", "BEAT_ANSWER": "1"})])
def test_a_deaf_or_hung_server_is_told_as_degraded_and_then_started_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, does: str, waits: dict[str, str]
) -> None:
    for name, seconds in waits.items():
        monkeypatch.setenv(f"MAI_SERVER_{name}_SECONDS", seconds)
    go = machine.folder / "go"
    machine.scenario({"serving": [["wait", str(go)], [does]]}, {})
    machine.up()
    go.touch()
    machine.wait("default", "degraded")
    state = machine.wait("default", "ready", "failed", attempt=2)
    assert state.phase == "ready", state.message
    assert len(state.deaths) == 1
    assert any("The server hangs: started afresh" in text for _, text in state.events)
