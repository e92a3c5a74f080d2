"""Notices that the person uses mouse or keyboard while the agent works: they take over, and the run pauses.

X11 does not tell a person's events from ours, so what counts is what changes while the hand is at rest: the pointer is
elsewhere than where it rested, a key or button is down that was not. Only X11 so far.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent.desktop.x11.connection import open_display
from agent.desktop.x11.windows import WindowList, window_list
from foundation.errors import EnvironmentLacksError

#: Between two looks, in seconds: a key that is typed is down for 50 ms and more.
_POLL = 0.025
#: Applications that move the pointer do so within this time after an action.
_SETTLES = 0.3
#: Pixels; a hand that rests on the mouse trembles.
_TREMBLE = 8
#: A pointer on its way to our own window is not taking over: it is judged where it comes to rest, or after the second.
_CALM, _LONGEST_WAY = 0.25, 0.7

At = tuple[int, int]


@dataclass(slots=True)
class Rest:
    """Whether the hand is at work, and since when it rests; written by the hand's thread."""

    busy: bool = False
    since: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class Look:
    """What is seen at one moment: pointer, buttons, and keys that are down (without modifiers)."""

    pointer: At
    buttons: frozenset[int] = frozenset()
    keys: frozenset[int] = frozenset()


class Steered(Protocol):
    """The part of `agent.run.steering.Steering` that is needed here."""

    @property
    def paused(self) -> str:
        """Why it is paused; "" when it is not."""
        ...

    def user_acted(self, what: str) -> None:
        """The person did something."""
        ...


class Judge:
    """Decides, look by look, what the person did; knows no display and no clock.

    Args:
        tell: is told what the person did, in words.
    """

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
        """Take in one look.

        Args:
            seen: what is there.
            now: when.
            ours: whether pointer and focus are on our own window, where the person talks to us.
        """
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
    """Watches until it is closed.

    Args:
        steering: is told.
        rest: of the hand.
        ours: whether a point, or the window with the focus for None, is our own.
    """

    def __init__(self, steering: Steered, rest: Rest, ours: Callable[[At | None], bool] = lambda _: False) -> None:
        self._steering = steering
        self._rest = rest
        self._ours = ours
        self._closed = threading.Event()
        self._modifiers: frozenset[int] = frozenset()
        self._thread = threading.Thread(target=self._watch, name="takeover", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop watching; does not wait."""
        self._closed.set()

    def _watch(self) -> None:
        try:
            display = open_display()
        except EnvironmentLacksError:
            return
        with suppress(Exception):  # a lost display is told by the watch on it
            self._modifiers = _modifiers(display)
            self._follow(display, Judge(self._steering.user_acted))
        with suppress(Exception):
            display.close()

    def _follow(self, display: Any, judge: Judge) -> None:
        paused, before_look, ours = False, None, False
        while not self._closed.wait(_POLL):
            if paused and not self._steering.paused:
                judge.forget()
            paused = bool(self._steering.paused)
            before = self._rest.since
            if self._rest.busy or time.monotonic() - before < _SETTLES:
                judge.forget()
                continue
            seen = self._look(display)
            if seen != before_look:  # asking whose window it is costs much more than looking
                ours = self._ours(seen.pointer) or (bool(seen.keys) and self._ours(None))
            before_look = seen
            if self._rest.busy or self._rest.since != before:  # the hand began under this look
                continue
            judge.look(seen, time.monotonic(), ours=ours)

    def _look(self, display: Any) -> Look:
        at = display.screen().root.query_pointer()
        pressed = display.query_keymap()
        keys = frozenset(code for code in range(8, 256) if pressed[code // 8] >> code % 8 & 1)
        buttons = frozenset(number for number in range(1, 6) if at.mask >> (7 + number) & 1)
        return Look((at.root_x, at.root_y), buttons, keys - self._modifiers)


class OurWindows:
    """Tells whether a point, or the focus for None, is on one of our own windows; opens its connection when asked."""

    def __init__(self, own: frozenset[int]) -> None:
        self._own = own
        self._windows: WindowList | None = None

    def __call__(self, at: At | None) -> bool:
        """Whether it is."""
        if not self._own:
            return False
        self._windows = self._windows or window_list()
        if self._windows is None:
            return False
        found = self._windows.active() if at is None else self._windows.at(*at)
        return found is not None and found.id in self._own


def _modifiers(display: Any) -> frozenset[int]:
    return frozenset(code for codes in display.get_modifier_mapping() for code in codes if code)
