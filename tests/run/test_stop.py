"""A stop ends the run at once, whatever it waits for, and nothing hung can hold the end up."""

import asyncio
import gc
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from stubs.desk import Desk, FakeHand, FakePerson, FakeScreen, every, run
from stubs.endpoint import FakeEndpoint, act, refuse, say, silent

from agent.events.run_events import Acted, Event, ModelDelta, Observed, RunFinished, Warned
from agent.run.control import Race, Worker
from agent.safety.policy import Approval
from agent.safety.stop import StopSwitch
from foundation.errors import ExitStatus, StoppedError

CLICK = act("click", coordinate=[500, 500])
#: Far beyond what a stop takes, so that only one that does not work at all runs into it.
LONG = 30


def ended_as_stopped(events: list[Event]) -> bool:
    last = events[-1]
    assert isinstance(last, RunFinished)
    assert (last.outcome, last.status) == ("stopped", ExitStatus.STOPPED)
    assert last.message == "Stopped: the test says so."
    return True


async def stopped_at(
    kind: type[Event], script: list[Any], delay: float = 0.0, **options: Any
) -> tuple[list[Event], Desk]:
    """A run that is stopped from another thread after an event of that kind, and ends by that."""

    def watch(event: Event, desk: Desk) -> None:
        if isinstance(event, kind):
            threading.Timer(delay, desk.stop.stop, ("the test says so",)).start()

    events, desk = await asyncio.wait_for(run(script, watch, **options), LONG)
    assert ended_as_stopped(events)
    return events, desk


async def stopped_in(behave: Callable[[StopSwitch], str]) -> tuple[list[Event], Desk]:
    """A run whose hand does that with its action, and a moment later is stopped."""
    screen, stop = FakeScreen(), StopSwitch()
    hand = FakeHand(screen)

    def do(_: object) -> str:
        threading.Timer(0.1, stop.stop, ("the test says so",)).start()
        return behave(stop)

    hand.behave = do
    events, desk = await asyncio.wait_for(run([CLICK], screen=screen, hand=hand, stop=stop), LONG - 10)
    assert ended_as_stopped(events)
    return events, desk


@pytest.mark.parametrize("begun", ["", "<thinking>\nI think"], ids=["before the first token", "in mid-answer"])
async def test_a_stop_while_the_model_is_silent_does_not_wait_for_it(begun: str) -> None:
    _, desk = await stopped_at(ModelDelta if begun else Observed, [silent(begun)], 0.2)
    assert desk.hand.closed
    assert desk.screen.closed


async def test_a_stop_while_the_hand_is_busy_lets_the_hand_let_go_first() -> None:
    released = threading.Event()

    def hold(stop: StopSwitch) -> str:
        try:
            stop.sleep(LONG)
        finally:
            released.set()
        return "never"

    events, desk = await stopped_in(hold)
    assert released.is_set()
    assert desk.hand.closed
    (acted,) = every(events, Acted)
    assert not acted.executed
    assert "part of it may have happened" in str(acted.error)


async def test_a_hand_that_hangs_cannot_hold_the_end_up() -> None:
    over = threading.Event()

    def hang(_: StopSwitch) -> str:
        over.wait(LONG)
        return "too late"

    await stopped_in(hang)
    over.set()


async def test_a_screen_that_hangs_cannot_hold_the_end_up() -> None:
    with FakeEndpoint([say(CLICK)]) as endpoint:
        desk = Desk(endpoint)
        desk.screen.holding = threading.Event()
        threading.Timer(0.2, desk.stop.stop, ("the test says so",)).start()
        events = await asyncio.wait_for(desk.run(), LONG - 10)
        desk.screen.holding.set()
    assert ended_as_stopped(events)


async def test_a_stop_while_the_screen_settles_is_heard() -> None:
    await stopped_at(Acted, [CLICK])


async def test_a_stop_during_a_long_wait_is_heard() -> None:
    await stopped_at(ModelDelta, [act("wait", seconds=50)], 0.3)


class Unreachable(FakePerson):
    """Never answers."""

    async def ask(self, question: str) -> str | None:
        await asyncio.sleep(3600)
        return None

    async def approve(self, action: Any, reason: str) -> Approval:
        await asyncio.sleep(3600)
        raise AssertionError


@pytest.mark.parametrize("answer", [act("ask_user", text="Hm?"), CLICK])
async def test_a_stop_while_the_person_is_asked_is_heard(answer: str) -> None:
    _, desk = await stopped_at(Observed, [answer], 0.5, person=Unreachable(), approve="ask")
    assert desk.hand.done == []


async def test_a_stop_before_the_first_step_touches_nothing() -> None:
    stop = StopSwitch()
    stop.stop("the test says so")
    events, desk = await run([CLICK], stop=stop)
    assert ended_as_stopped(events)
    assert desk.endpoint is not None and desk.endpoint.requests == []
    assert desk.hand.done == []


async def test_a_watcher_that_leaves_in_mid_run_still_has_everything_released() -> None:
    with FakeEndpoint([say(CLICK), say(CLICK)]) as endpoint:
        desk = Desk(endpoint)
        received: list[Event] = []

        def leave(event: Event) -> None:
            received.append(event)
            if isinstance(event, Acted):
                raise BrokenPipeError

        with pytest.raises(BrokenPipeError):
            await desk.run(leave)
        assert isinstance(received[-1], Acted)  # nothing is told to one who left
    assert desk.hand.closed
    assert desk.screen.closed


# The race and the workers


async def test_a_race_gives_the_result_or_the_error_of_what_it_waits_for() -> None:
    race = Race(StopSwitch())

    async def failing() -> None:
        raise ValueError("mine")

    assert await race(asyncio.sleep(0, "result")) == "result"
    with pytest.raises(ValueError, match="mine"):
        await race(failing())


async def test_a_race_that_is_stopped_cancels_what_it_waited_for() -> None:
    stop = StopSwitch()
    race, cancelled = Race(stop), asyncio.Event()

    async def endless() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    threading.Timer(0.05, stop.stop, ("now",)).start()
    with pytest.raises(StoppedError, match="now"):
        await race(endless())
    assert cancelled.is_set()


async def test_a_worker_runs_calls_in_order_on_one_thread_and_hands_errors_over() -> None:
    worker = Worker("test")
    threads = [await worker.call(threading.get_ident) for _ in range(3)]
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        await worker.call(lambda: 1 / 0)
    with pytest.raises(RuntimeError, match="ran out"):
        await worker.call(next, iter(()))
    worker.end()


def test_a_worker_whose_loop_is_gone_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    release, finished = threading.Event(), threading.Event()

    def late() -> None:
        release.wait(LONG)

    async def leave() -> Worker:
        worker = Worker("late")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(asyncio.ensure_future(worker.call(late))), 0.05)
        return worker

    worker = asyncio.run(leave())
    release.set()
    worker.submit(finished.set)
    assert finished.wait(LONG)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("kind", [ModelDelta, Warned, Observed])
async def test_once_the_events_cannot_be_told_nothing_more_is_asked_or_done(kind: type[Any]) -> None:
    # The refusal is told as a warning, from inside the client.
    script = [refuse(503, "loading"), say(CLICK), say(CLICK)]
    with FakeEndpoint(script) as endpoint:
        desk = Desk(endpoint)

        def full(event: Event) -> None:
            if isinstance(event, kind):
                raise OSError(28, "No space left on device")

        with pytest.raises(OSError, match="No space"):
            await desk.run(full)
    assert desk.hand.done == []
    assert desk.hand.closed
    assert len(endpoint.requests) <= 2


async def test_what_fails_while_it_is_cancelled_prints_no_traceback() -> None:
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))

    async def fails() -> None:
        try:
            await asyncio.sleep(LONG)
        finally:
            raise ValueError("late")

    async def stopped() -> None:
        stop = StopSwitch()
        asyncio.get_running_loop().call_later(0.05, stop.stop, "the test says so")  # it waits by then
        with suppress(StoppedError):
            await Race(stop)(fails())

    await stopped()
    gc.collect()  # asyncio tells of it when the task goes
    assert told == []
