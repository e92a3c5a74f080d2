"""Detects that the person uses mouse or keyboard while the agent works, so that the run pauses.

A desktop that only exposes its present state cannot tell the person's events from ours. So only changes while the hand
is at rest count: the pointer has moved, or a key or button went down.
"""

import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Protocol

from agent.desktop.protocol.desktop import TakeoverWatch

#: Seconds between two polls: a typed key is down for at least 50 ms.
_POLL = 0.025
#: Seconds after an action in which applications may still move the pointer.
_SETTLES = 0.3
#: Pixels by which the pointer may move, because a hand resting on the mouse trembles.
_TREMBLE = 8
#: Seconds. The pointer may be on its way to our own window, which is no takeover. So a move is judged only when the
#: pointer has rested for `_CALM`, at the latest after `_LONGEST_WAY`.
_CALM, _LONGEST_WAY = 0.25, 0.7

At = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Look:
    """The state of the input at one moment: pointer, buttons and keys that are down (without modifiers)."""

    pointer: At
    buttons: frozenset[int] = frozenset()
    keys: frozenset[int] = frozenset()


class InputState(Protocol):
    """A connection that reads the state of pointer and keyboard, used from one thread."""

    def look(self) -> Look:
        """Return the present state. May raise anything if the connection is lost."""

    def close(self) -> None:
        """Close the connection; never raises."""


class TakeoverJudge:
    """Decides from successive looks what the person did, and reports it in words. Needs no display and no clock."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._base: Look | None = None
        self._way: tuple[float, float, At] | None = None  # a move: its begin, its last change, and the pointer then
        self._told: set[str] = set()

    def forget(self) -> None:
        """Start over with the next look, because the hand acted or the run was resumed."""
        self._base, self._way = None, None
        self._told.clear()

    def look(self, seen: Look, now: float, *, ours: bool) -> None:
        """Process one look. `ours`: pointer or focus are on our own window, where using them is no takeover."""
        base = self._base
        if base is None or ours:
            self._base, self._way = seen, None
            return
        if seen.buttons - base.buttons:
            self._say("clicked", "clicked at {},{}".format(*seen.pointer))
        if seen.keys - base.keys:
            self._say("keys", "pressed keys")
        # Released keys and buttons can count again. The pointer is still compared with its old resting place.
        self._base = Look(base.pointer, seen.buttons, seen.keys)
        self._moved(base.pointer, seen.pointer, now)

    def _moved(self, rested: At, pointer: At, now: float) -> None:
        if max(abs(pointer[0] - rested[0]), abs(pointer[1] - rested[1])) <= _TREMBLE:
            self._way = None
            return
        if self._way is None:
            self._way = (now, now, pointer)
            return
        began, last, at = self._way
        if pointer != at:
            last, at = now, pointer
            self._way = (began, last, at)
        if now - last >= _CALM or now - began >= _LONGEST_WAY:
            self._say("moved", "moved the pointer to {},{}".format(*pointer))

    def _say(self, kind: str, message: str) -> None:
        if kind not in self._told:  # report it only once until the run goes on
            self._told.add(kind)
            self._tell(message)


class Takeover:
    """Watches on its own thread until it is closed. `open_input` opens the connection on that thread."""

    def __init__(self, watch: TakeoverWatch, open_input: Callable[[], InputState]) -> None:
        self._watch = watch
        self._open_input = open_input
        self._closed = threading.Event()
        threading.Thread(target=self._run, name="takeover", daemon=True).start()

    def close(self) -> None:
        self._closed.set()

    def _run(self) -> None:
        with suppress(Exception), closing(self._open_input()) as state:  # another watch reports a lost display
            self._follow(state, TakeoverJudge(self._watch.steering.user_acted))

    def _follow(self, state: InputState, judge: TakeoverJudge) -> None:
        steering, rest, is_ours = self._watch.steering, self._watch.rest, self._watch.is_ours
        paused, before_look, ours = False, None, False
        while not self._closed.wait(_POLL):
            if paused and not steering.paused:
                judge.forget()
            paused = bool(steering.paused)
            before = rest.since
            if rest.busy or time.monotonic() - before < _SETTLES:
                judge.forget()
                continue
            seen = state.look()
            if seen != before_look:  # `is_ours` is much slower than a look
                ours = is_ours(seen.pointer) or (bool(seen.keys) and is_ours(None))
            before_look = seen
            if rest.busy or rest.since != before:  # the hand started to act during this look
                continue
            judge.look(seen, time.monotonic(), ours=ours)
