"""The self-test: sends input to the test window and checks what arrives there.

It clicks and types only after the window has reported that the pointer, or the focus, is in it. The window's place in
the capture may be wrong; that is one of the things being tested.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from agent.core.actions import Button, Click, Drag, Move, PressKeys, Scroll, TypeText
from agent.core.geometry import DesktopPoint
from agent.desktop.protocol.desktop import Desktop, Finding, TakeoverWatch
from agent.desktop.protocol.hand import ActionFailedError, Hand
from agent.desktop.protocol.windows import Windows
from agent.desktop.self_test import window
from agent.desktop.self_test.capture import Pattern, look_for
from agent.desktop.self_test.window import SelfTestWindow
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError, StoppedError

#: Typed one after the other: Latin with letters that only some layouts have, Cyrillic, Chinese.
SCRIPTS = {"Latin": "Hello, Wörld ß 42", "Cyrillic": "Привет, мир", "Chinese": "你好，世界"}
#: Tolerances for the pointer and for the reported place of the window, in the window's units.
_NEAR, _SIDE = 1.5, 3.0
#: Positions to which the pointer is sent, as fractions of the window's size.
_PLACES = ((0.1, 0.1), (0.9, 0.15), (0.5, 0.5), (0.12, 0.88), (0.87, 0.9))
_REMEDIES = {
    "pointer": "Is another window on top of ours, or the scale of this monitor not 100 %?",
    "text": "Choose a layout that has these letters, or switch off the input method during runs.",
    "clipboard": "Receipts cannot report what you copy here; runs are not affected.",
}
_REMEDY = "Try again without touching mouse and keyboard; if it stays so, report it with this output."

T = TypeVar("T")


@dataclass(slots=True)
class _Ends:
    """Ends the self-test if the person uses mouse or keyboard: their input would count as ours."""

    stop: StopSwitch
    paused: str = ""

    def user_acted(self, what: str) -> None:
        self.stop.stop(f"you {what} yourself")


def window_environ(desktop: Desktop, environ: Mapping[str, str]) -> Mapping[str, str] | None:
    """Return the environment for a window on this desktop, on Wayland if possible; None if neither is possible."""
    for other in ("DISPLAY", "WAYLAND_DISPLAY"):
        alone = {name: value for name, value in environ.items() if name != other}
        if desktop.shows(alone):
            return alone
    return None


class SelfTest:
    """Tests a desktop that was opened for this test with this stop switch; `run` may be called only once.

    `environ` is the window's (see `window_environ`), `watch` the stop key; "" if nobody uses it, as in a sandbox.
    """

    def __init__(self, desktop: Desktop, environ: Mapping[str, str], stop: StopSwitch, watch: str = "") -> None:
        self._desktop, self._environ, self._stop = desktop, environ, stop
        self._number = random.SystemRandom().randrange(1 << 30)
        self._watch = watch
        self._window: SelfTestWindow
        self._hand: Hand
        self._origin = DesktopPoint(0, 0)

    def run(self) -> Iterator[Finding]:
        """Yield the result of each check as soon as it is known.

        Raises StoppedError if the person stopped the test, or used mouse or keyboard. No key is held down then.
        """
        with ExitStack() as opened:
            try:
                self._open(opened)
                yield from self._all()
            except EnvironmentLacksError as error:
                yield Finding("trial", ok=False, detail=error.what, remedy=error.remedy)
        if self._window_opened:
            held = self._window.held()
            detail = f"{', '.join(held)} stayed down" if held else "no key or button stays down"
            yield Finding("released", ok=not held, detail=detail, remedy="Press and release it once." if held else "")

    _window_opened = False
    _window_seen = False

    def _open(self, opened: ExitStack) -> None:
        self._hand = self._desktop.hand
        if self._watch:
            # On one compositor (cage), a window that appears, such as ours, looks like a person who uses the mouse.
            watched = TakeoverWatch(_Ends(self._stop), self._hand.rest, lambda _: not self._window_seen)
            self._desktop.watch(self._watch, watched if self._desktop.abilities.takeover else None)
        opened.callback(self._hand.close)
        with suppress(EnvironmentLacksError):
            if before := self._asked(lambda windows: windows.pointer()):
                opened.callback(self._put_pointer_back, before)
        with suppress(ActionFailedError):  # new windows appear where the pointer is
            self._hand.perform(Move(self._desktop.home))
        self._window = SelfTestWindow(self._environ, Pattern(self._number).colours, self._stop)
        self._window_opened = True
        opened.callback(self._window.close)
        opened.callback(self._hand.release_all)

    def _all(self) -> Iterator[Finding]:
        captured, origin = look_for(self._window, Pattern(self._number), self._desktop, self._stop)
        yield captured
        if origin is None:
            why = "mouse and keyboard were not tried: the window was not found on the screen"
            yield Finding("input", ok=None, detail=why)
            return
        self._origin, self._window_seen = origin, True
        yield self._told_by_windows()
        pointer = self._tried("pointer", self._arrives)
        yield pointer
        if not pointer.ok:
            yield Finding("input", ok=None, detail="no button was pressed and nothing typed: it could go elsewhere")
            return
        for button in ("left", "middle", "right"):
            yield self._tried(f"{button} button", partial(self._clicks, button))
        yield self._tried("drag", self._drags)
        for way, dx, dy in (("down", 0, 3), ("up", 0, -2), ("right", 2, 0), ("left", -1, 0)):
            yield self._tried(f"wheel {way}", partial(self._scrolls, dx, dy))
        yield from self._keyboard()

    def _keyboard(self) -> Iterator[Finding]:
        if self._window.last("focus") is None:
            # A seat without a keyboard gets one with the first key, and only then the window gets the focus. Shift
            # types nothing.
            self._hand.perform(PressKeys(("shift",)))
            self._window.wait_for(lambda: self._window.last("focus") is not None)
        focus = self._window.last("focus")
        if focus is None or not focus["here"]:
            why = "the window did not get the keyboard focus when it was clicked, so nothing was typed"
            yield Finding("keyboard", ok=False, detail=why, remedy="Close what keeps the focus, and try again.")
            return
        for script, text in SCRIPTS.items():
            yield self._tried(f"text, {script}", partial(self._types, text))
        yield self._tried("chord", self._presses_chord)
        yield self._tried("clipboard", self._reads_clipboard)

    def _tried(self, name: str, call: Callable[[], tuple[bool | None, str]]) -> Finding:
        self._window.forget()
        ok: bool | None = False
        try:
            ok, detail = call()
        except ActionFailedError as error:
            detail = str(error)
        return Finding(name, ok=ok, detail=detail, remedy="" if ok else _REMEDIES.get(name.partition(",")[0], _REMEDY))

    def _told_by_windows(self) -> Finding:
        if not self._desktop.abilities.windows:
            detail = "this desktop does not tell which window is where: rules about windows ask, or match nothing"
            return Finding("windows", ok=None, detail=detail)
        at = self._point(0.5, 0.5).rounded()
        found = self._asked(lambda windows: windows.at(*at))
        region = self._asked(lambda windows: windows.region(found.id)) if found else None
        if found is None or region is None or "mai-agent" not in found.title:
            detail = f"the window at {at[0]},{at[1]} is {found.title!r}" if found else "no window is reported"
            return Finding("windows", ok=False, detail=detail, remedy="Is another window on top of it?")
        near = max(abs(region.left - self._origin.x), abs(region.top - self._origin.y)) <= _SIDE
        detail = f"{found.title!r} ({found.app}) is reported at {region.left},{region.top}, {region.size}"
        return Finding("windows", ok=near, detail=detail, remedy="" if near else "It is seen elsewhere: report this.")

    def _arrives(self) -> tuple[bool, str]:
        worst = 0.0
        for share in (_PLACES[0], *_PLACES):  # some compositors lose a session's first move
            off = self._pointed(*share)
            if off is None:
                sent = "{},{}".format(*self._point(*share).rounded())
                return False, f"the pointer was sent to {sent} and did not arrive in the window"
            worst = max(worst, off)
        return worst <= _NEAR, f"arrives where it is sent, off by {worst:.1f} at most, at {len(_PLACES)} places"

    def _pointed(self, across: float, down: float) -> float | None:
        """Send the pointer to a place in the window. Return how far off it arrives; None if it does not arrive."""

        def arrived() -> bool:
            off = self._off(across, down)
            return bool(self._window.events("motion")) and off is not None and off <= _NEAR

        for nudge in (0.0, 0.02, 0.0):  # a move to where the pointer already is would send no event
            self._window.forget()
            self._hand.perform(Move(self._point(across + nudge, down)))
            if nudge == 0 and self._window.wait_for(arrived, window.TIMEOUT / 2):
                break
        return self._off(across, down) if self._window.events("motion") else None

    def _off(self, across: float, down: float) -> float | None:
        """Return how far the pointer is from a place in the window, by the last event; None if it is outside."""
        event, (wide, high) = self._window.last("motion", "left"), self._window.size
        if event is None or event["kind"] == "left":
            return None
        return float(max(abs(event["x"] - across * wide), abs(event["y"] - down * high)))

    def _clicks(self, button: Button) -> tuple[bool, str]:
        self._sure()
        self._hand.perform(Click(self._point(0.5, 0.5), button))
        self._window.wait("release")
        presses, releases = self._window.events("press"), self._window.events("release")
        clicks = [f"{one['button']} at {one['x']:g},{one['y']:g}" for one in presses]
        ok = [one["button"] for one in (*presses, *releases)] == [button, button]
        return ok, f"arrived as {clicks[0]}, and came up" if ok else f"what arrived: {', '.join(clicks) or 'nothing'}"

    def _drags(self) -> tuple[bool, str]:
        self._sure()
        size = self._window.size
        start, end = (0.2, 0.3), (0.7, 0.6)
        self._hand.perform(Drag(self._point(*start), self._point(*end)))
        up = self._window.wait("release")
        down = next(iter(self._window.events("press")), None)
        if up is None or down is None:
            return False, "the button did not go down and come up in the window"
        moved = up["x"] - down["x"], up["y"] - down["y"]
        wanted = (end[0] - start[0]) * size[0], (end[1] - start[1]) * size[1]
        steps = len(self._window.events("motion"))
        ok = max(abs(moved[0] - wanted[0]), abs(moved[1] - wanted[1])) <= 2 * _NEAR and steps > 3
        return ok, f"moved by {moved[0]:g},{moved[1]:g} with the button down, in {steps} steps"

    def _scrolls(self, dx: int, dy: int) -> tuple[bool, str]:
        self._sure()

        def turned() -> tuple[int, int]:
            events = self._window.events("wheel")
            return sum(one["right"] for one in events), sum(one["down"] for one in events)

        self._hand.perform(Scroll(self._point(0.5, 0.5), dx, dy))
        self._window.wait_for(lambda: turned() == (dx, dy))
        right, down = turned()
        detail = f"{abs(right or down)} of {abs(dx or dy)} steps arrived"
        return (right, down) == (dx, dy), detail if right * dx + down * dy >= 0 else f"{detail}, the wrong way"

    def _types(self, text: str) -> tuple[bool, str]:
        self._sure()
        self._window.ask("clear")
        self._window.wait("cleared")
        self._window.forget()
        self._hand.perform(TypeText(text))

        def arrived() -> str:
            events = self._window.events("text")
            return str(events[-1]["text"]) if events else ""

        self._window.wait_for(lambda: arrived() == text)
        found = arrived()
        return found == text, f"“{text}” arrived" if found == text else f"“{text}” arrived as “{found}”"

    def _presses_chord(self) -> tuple[bool, str]:
        self._sure()
        self._hand.perform(PressKeys(("ctrl", "shift", "k")))
        self._window.wait_for(lambda: len(self._window.events("key up")) >= 3)
        keys = [one for one in self._window.events("key") if one["name"].lower() == "k"]
        ok = len(keys) == 1 and keys[0]["modifiers"] == ["ctrl", "shift"]
        chord = "+".join([*keys[0]["modifiers"], keys[0]["name"]]) if keys else "nothing"
        return ok, f"ctrl+shift+k arrived as {chord}"

    def _reads_clipboard(self) -> tuple[bool | None, str]:
        """Check that the desktop can read the clipboard. The person's clipboard is only read."""
        witness = self._desktop.open_witness(self._environ)
        if witness is None:
            return False, "this desktop does not tell what the clipboard holds"
        with closing(witness):
            witness.changes()  # returns once the first state is known
            lacking = next((remark for remark in witness.remarks if "clipboard" in remark), "")
        return (None, lacking) if lacking else (True, "receipts can report what you copy")

    def _sure(self) -> None:
        """Move the pointer into the window. Raises ActionFailedError unless the window reports it there."""
        self._stop.check()
        off = self._off(0.5, 0.5)
        off = self._pointed(0.5, 0.5) if off is None or off > _NEAR else off
        self._window.forget()
        if off is None or off > _NEAR:
            at = self._point(0.5, 0.5).rounded()
            found = self._asked(lambda windows: windows.at(*at))
            note = f" ({found.title!r} is reported there)" if found is not None else ""
            position = "not in it" if off is None else f"{off:g} units off in it"
            raise ActionFailedError(f"the pointer was sent into the window and is {position}{note}")

    def _point(self, across: float, down: float) -> DesktopPoint:
        size = self._window.size
        return DesktopPoint(self._origin.x + across * size[0], self._origin.y + down * size[1])

    def _asked(self, question: Callable[[Windows], T]) -> T | None:
        windows = self._desktop.open_windows()
        if windows is None:
            return None
        with closing(windows):
            return question(windows)

    def _put_pointer_back(self, at: tuple[int, int]) -> None:
        if not self._stop.stopped:
            with suppress(ActionFailedError, EnvironmentLacksError, StoppedError):
                self._hand.perform(Move(DesktopPoint(*at)))
