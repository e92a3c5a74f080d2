"""What runs beside the loop: waits that the stop switch can end, daemon threads, and what a person asks of a run.

Other threads call `Steering` (a terminal application, the display's input watch). The loop checks it between steps and
before it acts. Stopping is separate, because the stop switch must not depend on the loop.
"""

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar

from agent.safety.stop import StopSwitch
from foundation.errors import MaiError

T = TypeVar("T")


class Race:
    """Races awaitables against the stop switch, on one event loop."""

    def __init__(self, stop: StopSwitch) -> None:
        self._stop = stop
        self._stopped: asyncio.Event | None = None
        self._alarm: asyncio.TimerHandle | None = None

    async def __call__(self, waiting: Awaitable[T]) -> T:
        """Wait for an awaitable.

        Raises StoppedError: the stop switch is set. The awaitable is cancelled.
        """
        stopped = self._listening()
        task = asyncio.ensure_future(waiting)
        stopping = asyncio.ensure_future(stopped.wait())
        try:
            await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                self._stop.check()
            return await task
        finally:
            stopping.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=0.2)
            if task.done() and not task.cancelled():
                task.exception()  # else asyncio prints that the exception was never retrieved

    def check(self) -> None:
        """Raise the error that ended the run, if there is one."""
        self._stop.check()

    async def for_person(self, waiting: Awaitable[T]) -> T:
        """Wait for a person. The time limit is suspended meanwhile. Raises StoppedError."""
        if self._alarm is None:
            return await self(waiting)
        left = self._alarm.when() - asyncio.get_running_loop().time()
        self._alarm.cancel()
        try:
            return await self(waiting)
        finally:
            self.limit(max(0.0, left), self._too_late)

    def limit(self, seconds: float, too_late: MaiError) -> None:
        """Stop with `too_late` after this many seconds."""
        self._too_late = too_late
        self._alarm = asyncio.get_running_loop().call_later(seconds, self._stop.fail, too_late)

    def end(self) -> None:
        """Remove the time limit."""
        if self._alarm is not None:
            self._alarm.cancel()

    def _listening(self) -> asyncio.Event:
        if self._stopped is None:
            self._stopped = asyncio.Event()
            self._stop.on_stop(partial(_wake, [(asyncio.get_running_loop(), self._stopped)]))
        return self._stopped


class Worker:
    """Runs calls one after another on its own daemon thread.

    Screen capture and input must stay on one thread each, because their X connections are not shared. A call that hangs
    in a dead display must not keep the program from exiting, as the threads of a pool would.
    """

    def __init__(self, name: str) -> None:
        self._last: Callable[[], None] | None = None
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def submit(self, function: Callable[..., T], *arguments: Any) -> "Future[T]":
        """Queue `function(*arguments)`. The future can be cancelled until the call starts."""
        future: Future[T] = Future()
        self._calls.put((future, lambda: function(*arguments)))
        return future

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run `function(*arguments)` on the thread, and return or raise its result."""
        return await asyncio.wrap_future(self.submit(function, *arguments))

    def end(self, last: Callable[[], None] | None = None) -> None:
        """End the thread after the queued calls and `last`, which must not raise. Does not wait."""
        self._last = last
        self._calls.put(None)

    def _work(self) -> None:
        while (item := self._calls.get()) is not None:
            future, call = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except StopIteration:  # asyncio futures reject StopIteration
                future.set_exception(RuntimeError("a call on a worker ran out of items"))
            except BaseException as caught:  # passed on to the waiting caller
                future.set_exception(caught)
        if self._last is not None:
            self._last()


#: What keeps a run from going on by itself: the person paused it, uses mouse or keyboard, or sees each action first.
Hold: TypeAlias = Literal["", "paused", "taken over", "step"]
_Waiter: TypeAlias = tuple[asyncio.AbstractEventLoop, asyncio.Event]


class Steering:
    """What a person asks of a running run: pause, single step, a message to the model, a takeover of the mouse.

    Every method may be called from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._paused = ""
        self._single = self._theirs = False
        self._told: list[str] = []
        self._acts: list[str] = []
        self._waiting: list[_Waiter] = []  # for resume
        self._watching: list[_Waiter] = []  # for an act of the person

    # The person's side

    def pause(self) -> None:
        """Wait before the next step. An action that was decided by then needs the person's approval."""
        with self._lock:
            self._single = False
            self._paused = self._paused or "you paused it"

    def resume(self, *, single: bool = False) -> None:
        """Continue the run; with `single`, only until the next action is decided, and ask the person about it."""
        with self._lock:
            self._paused, self._single, self._theirs = "", single, False
            waiting, self._waiting = self._waiting, []
        _wake(waiting)

    def step(self) -> None:
        """Continue the run by one step."""
        self.resume(single=True)

    def tell(self, text: str) -> None:
        """Send a message to the model with its next request."""
        with self._lock:
            self._told.append(text)

    def user_acted(self, what: str) -> None:
        """Record that the person used mouse or keyboard. Earlier decisions are void, and the run pauses."""
        with self._lock:
            if what not in self._acts:
                self._acts.append(what)
            self._single, self._theirs = False, True
            self._paused = self._paused or f"you took over: {what}"
            watching, self._watching = self._watching, []
        _wake(watching)

    # The loop's side

    @property
    def paused(self) -> str:
        """Return why the run is paused; "" if it is not."""
        return self._paused

    @property
    def hold(self) -> str:
        """Return why the person must approve the next action; "" if that is not needed."""
        return self._paused or ("you go step by step" if self._single else "")

    @property
    def held_by(self) -> Hold:
        """Return what keeps the run from going on by itself; "" if nothing does."""
        if self._paused:
            return "taken over" if self._theirs else "paused"
        return "step" if self._single else ""

    @property
    def acted(self) -> bool:
        """Return whether the person acted since the last `take_acts`."""
        return bool(self._acts)

    def take_told(self) -> list[str]:
        """Return what the person said since the last call."""
        with self._lock:
            messages, self._told = self._told, []
        return messages

    def take_acts(self) -> list[str]:
        """Return what the person did since the last call."""
        with self._lock:
            acts, self._acts = self._acts, []
        return acts

    async def taken_over(self) -> None:
        """Wait until the person acts."""
        event = asyncio.Event()
        with self._lock:
            if self._acts:
                return
            self._watching.append((asyncio.get_running_loop(), event))
        await event.wait()

    async def resumed(self) -> None:
        """Wait until the run is not paused."""
        event = asyncio.Event()
        with self._lock:
            if not self._paused:
                return
            self._waiting.append((asyncio.get_running_loop(), event))
        await event.wait()


def _wake(waiters: list[_Waiter]) -> None:
    for loop, event in waiters:
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(event.set)
