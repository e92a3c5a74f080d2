"""The real command on a real display, killed and cut off in every way: one sentence, the right status, nothing held."""

import os
import resource
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from stubs.display import PlainDisplay, wait_until
from stubs.endpoint import DONE, Behaviour, Exchange, FakeEndpoint, act, events, half, raw, refuse, say, silent
from stubs.program import Program, ended, environ_without_display

pytestmark = pytest.mark.e2e

CLICK = act("click", coordinate=[500, 500])
HOLD = act("hold_key", keys="shift", seconds=60)
DRAG = act("drag", start_coordinate=[200, 200], end_coordinate=[800, 800])


@pytest.fixture
def display() -> Iterator[PlainDisplay]:
    with PlainDisplay() as found:
        found.start("xterm", "-geometry", "100x40+100+50", "-e", "cat")
        yield found


@pytest.fixture
def run(tmp_path: Path, display: PlainDisplay) -> Iterator[Callable[..., Program]]:
    """Starts `mai-agent` against an endpoint on the display; ended with the test."""
    programs: list[Program] = []

    def start(endpoint: FakeEndpoint, *arguments: str, runs: Path | None = None) -> Program:
        command = ("--endpoint", endpoint.url, "--approve", "never", *arguments, "do the task")
        programs.append(Program(tmp_path / f"home{len(programs)}", display.environ, *command, runs=runs))
        return programs[-1]

    yield start
    for program in programs:
        program.__exit__()


Run = Callable[..., Program]


# The endpoint


def dying(exchange: Exchange) -> None:
    """The server's process is killed in the middle of an answer."""
    exchange.start_stream()
    exchange.delta("<thinking>\nI")
    servers[0].die()
    exchange.hang_up()


servers: list[FakeEndpoint] = []

BROKEN: dict[str, tuple[Behaviour, str, int]] = {
    "dies in mid-answer": (dying, "There is no connection to", 3),
    "500s": (refuse(500, "EngineCore died"), "EngineCore died", 3),
    "garbage": (raw(200, b"\x00\xff garbage \xfe" * 50, "text/event-stream"), "an invalid answer", 3),
    "no JSON": (events("{nonsense"), "an invalid answer", 3),
    "half a stream": (half("<thinking>\nI"), "There is no connection to", 3),
    "silence": (silent(), "has said nothing for", 3),
    "an empty message": (say(""), "the answer is empty", 1),
    "nonsense": (say("I cannot see anything."), "no tool call", 1),
}


@pytest.mark.slow
@pytest.mark.parametrize(("behaviour", "says", "status"), BROKEN.values(), ids=BROKEN.keys())
def test_an_endpoint_that_breaks_in_mid_run_ends_it_in_a_sentence(
    run: Run, display: PlainDisplay, behaviour: Behaviour, says: str, status: int
) -> None:
    with FakeEndpoint(lambda number: behaviour if number else say(CLICK)) as endpoint:
        servers[:] = [endpoint]
        program = run(endpoint, "--patience", "2")
        outcome = "unparsable" if status == 1 else "failed"
        ended(program, status, outcome, says, display)
        assert len(program.bundle.steps) == 2
        assert program.bundle.steps[0].executed is True


def test_an_endpoint_that_is_not_there_ends_the_run_before_anything_is_touched(run: Run, display: PlainDisplay) -> None:
    endpoint = FakeEndpoint()
    endpoint.close()
    before = display.pointer()
    ended(run(endpoint), 3, None, "There is no connection to", display)
    assert display.pointer() == before


@pytest.mark.slow
def test_a_wrong_key_and_an_unknown_model_are_said(run: Run) -> None:
    with FakeEndpoint(key="secret") as endpoint:
        ended(run(endpoint), 3, None, "refuses the key")
    with FakeEndpoint() as endpoint:
        ended(run(endpoint, "--model", "MAI-UI-99B"), 3, None, "does not serve 'MAI-UI-99B'")


# The display


@pytest.mark.slow
def test_a_display_that_goes_away_while_the_model_thinks_ends_the_run(run: Run, display: PlainDisplay) -> None:
    def lose(exchange: Exchange) -> None:
        display.kill()
        say(CLICK)(exchange)

    with FakeEndpoint([say(act("wait", seconds=0.1)), lose]) as endpoint:
        ended(run(endpoint), 3, "failed", "display")


@pytest.mark.slow
@pytest.mark.parametrize("answer", [HOLD, DRAG], ids=["a held key", "a drag"])
def test_a_display_that_goes_away_under_the_hand_ends_the_run(run: Run, display: PlainDisplay, answer: str) -> None:
    with FakeEndpoint([say(answer)]) as endpoint:
        program = run(endpoint)
        wait_until(display.pressed, "something is pressed")
        display.kill()
        ended(program, 3, "failed", "went away")


def test_without_a_display_the_way_to_a_sandbox_is_named(tmp_path: Path) -> None:
    with Program(tmp_path, environ_without_display(), "--endpoint", "127.0.0.1:1", "x") as program:
        assert program.wait() == 3
        assert "--sandbox" in program.err
        assert "Traceback" not in program.err
        assert len(program.err.splitlines()) == 1
        assert program.out == ""


@pytest.mark.slow
def test_a_display_that_is_not_there_is_named(tmp_path: Path) -> None:
    wrong = {**os.environ, "DISPLAY": ":59999", "XAUTHORITY": os.devnull}
    with FakeEndpoint([say(DONE)]) as endpoint, Program(tmp_path, wrong, "--endpoint", endpoint.url, "x") as program:
        ended(program, 3, "failed", "':59999'")
        assert "--sandbox" in program.err


# The person


@pytest.mark.slow
@pytest.mark.parametrize(
    ("presses", "says"),
    [
        ([signal.SIGINT], "Ctrl-C."),
        ([signal.SIGINT] * 2, "Ctrl-C."),
        ([signal.SIGTERM], "a signal asked for it."),
        ([signal.SIGHUP], "the terminal was closed."),
    ],
    ids=["Ctrl-C", "Ctrl-C twice", "TERM", "HUP"],
)
@pytest.mark.parametrize("answer", [HOLD, DRAG], ids=["a held key", "a drag"])
def test_a_signal_under_a_busy_hand_lets_everything_go(
    run: Run, display: PlainDisplay, answer: str, presses: list[signal.Signals], says: str
) -> None:
    with FakeEndpoint([say(answer)]) as endpoint:
        program = run(endpoint)
        wait_until(display.pressed, "something is pressed")
        for number in presses:
            program.signal(number)
        ended(program, 130, "stopped", says, display)


THINKING: dict[str, list[Behaviour]] = {
    "before the first token": [silent()],
    "in mid-answer": [silent("<thinking>\nI")],
    "in a long wait": [say(act("wait", seconds=50))],
    "while retrying": [refuse(503, "loading")] * 9,
}


@pytest.mark.slow
@pytest.mark.parametrize("script", THINKING.values(), ids=THINKING.keys())
def test_ctrl_c_while_waiting_stops_at_once(run: Run, display: PlainDisplay, script: list[Behaviour]) -> None:
    asked = threading.Event()

    def first(exchange: Exchange) -> None:
        threading.Timer(0.3, asked.set).start()
        script[0](exchange)

    with FakeEndpoint([first, *script[1:]]) as endpoint:
        program = run(endpoint)
        assert asked.wait(60)
        program.signal(signal.SIGINT)
        ended(program, 130, "stopped", "Ctrl-C.", display)


@pytest.mark.slow
def test_ctrl_c_before_the_server_has_said_what_it_serves_stops_the_run(run: Run) -> None:
    asked = threading.Event()

    class Slow(FakeEndpoint):
        def _list_models(self, handler: object) -> None:
            asked.set()
            self._over.wait(60)

    with Slow() as endpoint:
        program = run(endpoint)
        assert asked.wait(60)
        program.signal(signal.SIGINT)
        ended(program, 130, None, "Ctrl-C.")


def test_ctrl_c_as_soon_as_the_run_is_recorded_stops_it(run: Run, display: PlainDisplay) -> None:
    with FakeEndpoint([say(HOLD), say(DONE)]) as endpoint:
        program = run(endpoint)
        wait_until(lambda: list(program.runs.glob("*/steps.jsonl")), "the bundle")
        program.signal(signal.SIGINT)
        ended(program, 130, "stopped", "Ctrl-C.", display)


@pytest.mark.slow
@pytest.mark.parametrize("answer", [HOLD, DRAG], ids=["a held key", "a drag"])
def test_the_pointer_slammed_into_a_corner_stops_a_busy_hand(run: Run, display: PlainDisplay, answer: str) -> None:
    with FakeEndpoint([say(answer)]) as endpoint:
        program = run(endpoint)
        wait_until(display.pressed, "something is pressed")
        display.call("xdotool", "mousemove", "0", "0")
        ended(program, 130, "stopped", "corner", display)


def test_the_pointer_slammed_into_a_corner_stops_a_thinking_model(run: Run, display: PlainDisplay) -> None:
    def slam(exchange: Exchange) -> None:
        display.call("xdotool", "mousemove", "1279", "799")
        silent()(exchange)

    with FakeEndpoint([slam]) as endpoint:
        ended(run(endpoint), 130, "stopped", "corner", display)


@pytest.mark.slow
def test_a_click_asked_for_in_the_corner_is_no_stop(run: Run, display: PlainDisplay) -> None:
    script = [say(act("click", coordinate=corner)) for corner in ([0, 0], [999, 0], [0, 999], [999, 999])]
    with FakeEndpoint([*script, say(DONE)]) as endpoint:
        ended(run(endpoint), 0, "done", "The task is done.", display)


@pytest.mark.slow
def test_a_run_that_is_killed_outright_keeps_its_finished_steps(run: Run) -> None:
    with FakeEndpoint([say(CLICK), say(act("wait", seconds=0.1)), silent()]) as endpoint:
        program = run(endpoint)
        wait_until(lambda: len(endpoint.requests) == 3, "the third request")
        assert program.bundle.outcome == "running"
        program.signal(signal.SIGKILL)
        program.wait()
        assert program.bundle.outcome == "interrupted"
        assert [step.step for step in program.bundle.steps] == [1, 2]


# Output and disk


def test_json_prints_one_event_a_line_and_nothing_else(run: Run, display: PlainDisplay) -> None:
    script = [say("junk"), say(CLICK), say(act("type", text="“héllo”\n")), refuse(503, "busy"), say(DONE)]
    with FakeEndpoint(script) as endpoint:
        program = run(endpoint, "--json")
        assert program.wait() == 0
    kinds = [event["event"] for event in program.events()]
    assert kinds[0] == "RunStarted"
    assert kinds[-1] == "RunFinished"
    assert {"Observed", "ModelDelta", "Decided", "Acted", "StepFinished", "Warned"} <= set(kinds)
    assert "Traceback" not in program.err
    assert display.pressed() == []


def test_a_dry_run_moves_and_presses_nothing(run: Run, display: PlainDisplay) -> None:
    display.call("xdotool", "mousemove", "77", "88")
    with FakeEndpoint([say(CLICK), say(HOLD), say(act("type", text="x")), say(DONE)]) as endpoint:
        program = run(endpoint, "--dry-run")
        ended(program, 0, "done", "The task is done.", display)
    assert display.pointer() == (77, 88)
    assert {step.executed for step in program.bundle.steps} == {False}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Room for one or two screenshots: a small file system, or where none may be mounted, small files."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=60k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    if mounted.returncode:  # inherited by what is started; files of this process stay small enough
        resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, limits[1]))
    yield folder / "runs"
    if mounted.returncode:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    else:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk_ends_the_run_in_a_sentence_with_a_readable_bundle(
    run: Run, display: PlainDisplay, small_disk: Path
) -> None:
    with FakeEndpoint(lambda number: say(act("click", "word " * 300, coordinate=[number * 40, 300]))) as endpoint:
        program = run(endpoint, runs=small_disk)
        ended(program, 3, "failed", "cannot be recorded", display)
        assert "--runs" in program.err


def test_a_reader_that_goes_away_ends_the_run_quietly(tmp_path: Path, display: PlainDisplay) -> None:
    with FakeEndpoint(lambda _: say(HOLD.replace("60", "0.1"))) as endpoint:
        program = Program(tmp_path, display.environ, "--endpoint", endpoint.url, "--json", "x")
        program.__exit__()
        command = f"{' '.join(program.process.args)} | head -n 3"  # type: ignore[arg-type]  # a list of words
        done = subprocess.run(
            command, shell=True, env={**display.environ, "HOME": str(tmp_path)}, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert len(done.stdout.splitlines()) == 3
    assert display.pressed() == []
