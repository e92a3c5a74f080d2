"""What a person asks of a running run: pause, single step, a message to the model, a takeover of the mouse.

Other threads call this (a terminal application, the display's input watch). The loop checks it between steps and before
it acts. Stopping is separate, because the stop switch must not depend on the loop.
"""

import asyncio
import threading
from contextlib import suppress
from typing import Literal, TypeAlias

#: What keeps a run from going on by itself: the person paused it, uses mouse or keyboard, or sees each action first.
Hold: TypeAlias = Literal["", "paused", "taken over", "step"]
_Waiter: TypeAlias = tuple[asyncio.AbstractEventLoop, asyncio.Event]


class Steering:
    """The controls of one run. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._paused = ""
        self._single = self._theirs = False
        self._told: list[str] = []
        self._acts: list[str] = []
        self._waiting: list[_Waiter] = []  # for resume
        self._watching: list[_Waiter] = []  # for an act of the person

    # The person's side

    def pause(self, reason: str = "you paused it") -> None:
        """Wait before the next step. An action that was decided by then needs the person's approval."""
        with self._lock:
            self._single = False
            self._paused = self._paused or reason

    def resume(self) -> None:
        """Continue the run."""
        self._go(single=False)

    def step(self) -> None:
        """Continue until the next action is decided, and ask the person about it."""
        self._go(single=True)

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

    def _go(self, *, single: bool) -> None:
        with self._lock:
            self._paused, self._single, self._theirs = "", single, False
            waiting, self._waiting = self._waiting, []
        _wake(waiting)


def _wake(waiters: list[_Waiter]) -> None:
    for loop, event in waiters:
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(event.set)
