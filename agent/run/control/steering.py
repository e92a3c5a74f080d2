"""What a person asks of a run while it goes on: pause, single step, a word to the model, their own hand on the mouse.

Called from other threads (a terminal application, the watch on the display); the loop looks at it between its steps and
before it acts. Stopping is not here: the stop switch does not depend on the loop.
"""

import asyncio
import threading
from contextlib import suppress
from typing import TypeAlias

_Waiter: TypeAlias = tuple[asyncio.AbstractEventLoop, asyncio.Event]


class Steering:
    """One run's steering wheel; every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._paused = ""
        self._single = False
        self._told: list[str] = []
        self._acts: list[str] = []
        self._waiting: list[_Waiter] = []  # for the run to go on
        self._watching: list[_Waiter] = []  # for the person to act

    # The person's side

    def pause(self, reason: str = "you paused it") -> None:
        """Wait before the next step; an action that is decided by then is put to the person first."""
        with self._lock:
            self._single = False
            self._paused = self._paused or reason

    def resume(self) -> None:
        """Go on."""
        self._go(single=False)

    def step(self) -> None:
        """Go on until the next action is decided, and put that to the person."""
        self._go(single=True)

    def tell(self, text: str) -> None:
        """Say something to the model; it gets it with its next request."""
        with self._lock:
            self._told.append(text)

    def user_acted(self, what: str) -> None:
        """The person used mouse or keyboard themselves: what was decided before that is void, and the run pauses."""
        with self._lock:
            if what not in self._acts:
                self._acts.append(what)
            self._single = False
            self._paused = self._paused or f"you took over: {what}"
            watching, self._watching = self._watching, []
        _wake(watching)

    # The loop's side

    @property
    def paused(self) -> str:
        """Why it is paused; "" when it is not."""
        return self._paused

    @property
    def hold(self) -> str:
        """Why the next action is to be put to the person first; "" when it need not be."""
        return self._paused or ("single step" if self._single else "")

    @property
    def acted(self) -> bool:
        """Whether the person acted since `take_acts`."""
        return bool(self._acts)

    def take_told(self) -> list[str]:
        """What the person said since the last call."""
        with self._lock:
            told, self._told = self._told, []
        return told

    def take_acts(self) -> list[str]:
        """What the person did since the last call."""
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
        """Wait until it is not paused."""
        event = asyncio.Event()
        with self._lock:
            if not self._paused:
                return
            self._waiting.append((asyncio.get_running_loop(), event))
        await event.wait()

    def _go(self, *, single: bool) -> None:
        with self._lock:
            self._paused, self._single = "", single
            waiting, self._waiting = self._waiting, []
        _wake(waiting)


def _wake(waiters: list[_Waiter]) -> None:
    for loop, event in waiters:
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(event.set)
