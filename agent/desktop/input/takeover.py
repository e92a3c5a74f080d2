"""Notices that the person uses mouse or keyboard while the agent works: they take over, and the run pauses.

A desktop that only tells its present state does not tell a person's events from ours, so what counts is what changes
while the hand is at rest: the pointer is elsewhere than where it rested, a key or button is down that was not.
"""

import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Protocol

from agent.desktop.protocol.desktop import TakeoverWatch

#: Between two looks, in seconds: a key that is typed is down for 50 ms and more.
_POLL = 0.025
#: Applications that move the pointer do so within this time after an action.
_SETTLES = 0.3
#: Pixels; a hand that rests on the mouse trembles.
_TREMBLE = 8
#: A pointer on its way to our own window is not taking over: it is judged where it comes to rest, or after the second.
_CALM, _LONGEST_WAY = 0.25, 0.7

At = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Look:
    """What is seen at one moment: pointer, buttons, and keys that are down (without modifiers)."""

    pointer: At
    buttons: frozenset[int] = frozenset()
    keys: frozenset[int] = frozenset()


class InputState(Protocol):
    """A connection that tells the state of pointer and keyboard, used from one thread."""

    def look(self) -> Look:
        """What it is now; may raise anything when the connection is lost."""

    def close(self) -> None:
        """Close the connection; never raises."""


class TakeoverJudge:
    """Decides, look by look, what the person did, and tells it in words; knows no display and no clock."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._base: Look | None = None
        self._way: tuple[float, float, At] | None = None  # a move: when it began, when and where it was last seen
        self._told: set[str] = set()

    def forget(self) -> None:
        """Start over from the next look: the hand acts, or the run goes on."""
        self._base, self._way = None, None
        self._told.clear()

    def look(self, seen: Look, now: float, *, ours: bool) -> None:
        """Take in one look; `ours` when pointer or focus are on our own window, where the person talks to us."""
        base = self._base
        if base is None or ours:
            self._base, self._way = seen, None
            return
        if seen.buttons - base.buttons:
            self._say("clicked", "clicked at {},{}".format(*seen.pointer))
        if seen.keys - base.keys:
            self._say("keys", "pressed keys")
        # Keys and buttons that were let go can be pressed anew; where the pointer rested stays.
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

    def _say(self, kind: str, what: str) -> None:
        if kind not in self._told:  # once is enough until the run goes on
            self._told.add(kind)
            self._tell(what)


class Takeover:
    """Watches until it is closed; `open_input` opens the connection, on the watching thread."""

    def __init__(self, watch: TakeoverWatch, open_input: Callable[[], InputState]) -> None:
        self._watch = watch
        self._open_input = open_input
        self._closed = threading.Event()
        threading.Thread(target=self._run, name="takeover", daemon=True).start()

    def close(self) -> None:
        """Stop watching; does not wait."""
        self._closed.set()

    def _run(self) -> None:
        with suppress(Exception), closing(self._open_input()) as state:  # a lost display is told by the watch on it
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
            if seen != before_look:  # asking whose window it is costs much more than looking
                ours = is_ours(seen.pointer) or (bool(seen.keys) and is_ours(None))
            before_look = seen
            if rest.busy or rest.since != before:  # the hand began under this look
                continue
            judge.look(seen, time.monotonic(), ours=ours)
