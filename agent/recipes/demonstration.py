"""Records what a person does on the desktop as a run, so that it can become a recipe.

Every click, key and text is recorded with its target: the element that the desktop names at that moment, and the
outline from just before. Outlines are taken continuously, because a click may close the element that it hits.
Text is only kept if the field shows it. What no field shows (a password, also at a terminal's prompt) is masked.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from agent.core.actions import Action, Click, Drag, PressKeys, Scroll, TypeText
from agent.core.geometry import DesktopPoint
from agent.core.roles import role_group
from agent.desktop.protocol.desktop import DEFAULT_CHORD, Desktop
from agent.desktop.protocol.elements import Elements
from agent.desktop.protocol.input_log import (
    ButtonPressed,
    ButtonReleased,
    InputLog,
    KeyPressed,
    PersonInput,
    WheelTurned,
)
from agent.desktop.protocol.windows import Window, Windows
from agent.events import run_events as events
from agent.events.run_events import Emit
from agent.run.loop.witness_worker import Watch
from agent.run.observing.outliner import Eye
from agent.safety.naming import Aim, named
from agent.safety.stop import StopSwitch
from agent.screen.captions import caption_at
from agent.screen.capture import Frame
from agent.screen.encode import encode
from agent.screen.nearby import Described, described_at, described_field
from agent.screen.ocr import Ocr, reading_languages
from agent.screen.outline import Element, Outline
from foundation.chat_stream import Usage
from foundation.errors import EnvironmentLacksError, ExitStatus

#: Seconds and pixels between the two presses of a double click. Toolkits allow 0.25 to 0.5 seconds.
_DOUBLE, _NEAR = 0.5, 5
#: Pixels that a pressed button must move to count as a drag.
_DRAGS = 8
#: Seconds without input after which the pending action is checked.
_IDLE = 0.1
#: Seconds to wait for the name of an action's target before the action takes effect, and again on a busy machine.
_PROMPT, _LATE = 0.4, 1.5
#: Seconds between two looks at the screen.
_BETWEEN_LOOKS = 0.25
#: Seconds for the receipt; of these, seconds for programs to write settings.
_RECEIPT, _SETTLE = 3.0, 1.0
#: Stands for a dead key in a text: the resulting character is unknown.
_DEAD = "\N{REPLACEMENT CHARACTER}"
#: Roles of controls that Space switches, and of all that it presses.
_SWITCHES = role_group("what is on or off")
_PRESSED = _SWITCHES | role_group("what is pressed")
T = TypeVar("T")
_STOP = frozenset(DEFAULT_CHORD.split("+"))
_UNWATCHED = EnvironmentLacksError(
    "What you do cannot be recorded on this desktop: only X11 reports a person's input to other programs.",
    "Run the task with mai-agent and keep it with `mai-agent save`.",
)


@dataclass(frozen=True, slots=True)
class _Seen:
    """The screen and its elements; `began` is the `time.monotonic()` at which the look began."""

    frame: Frame
    outline: Outline
    began: float


@dataclass(slots=True)
class _Deed:
    """An action that the person may still extend to a double click, a longer text, more notches of the wheel."""

    action: Action[DesktopPoint]
    seen: _Seen | None
    element: Element | None
    described: Described | None
    window: Window | None
    last: float  # `time.monotonic()` of its last input
    read: str = ""  # the part of the text that the field was seen to show

    @property
    def is_shown(self) -> bool:
        """Whether the field shows the text. Its last character may be missing, because the field was closed by then."""
        text = self.action.text if isinstance(self.action, TypeText) else ""
        return _DEAD not in text and text in (self.read, self.read + text[-1:])


async def demonstrate(desktop: Desktop, instruction: str, bundle: Path, stop: StopSwitch, emit: Emit) -> None:
    """Record what the person does until `stop` is set. Every event goes to `emit`, which also records.

    Raises EnvironmentLacksError: the desktop does not report input, or it was lost.
    """
    log = desktop.open_input_log()
    if log is None:
        raise _UNWATCHED
    began = time.monotonic()
    watch = Watch(partial(desktop.open_witness, os.environ, [bundle.absolute()]))
    with closing(log), _Looker(desktop) as looker:
        watch.begin()
        await watch.ready()
        person = events.ModelInUse("person", "", "", "")
        viewport = (await asyncio.to_thread(looker.first)).frame.viewport
        emit(events.RunStarted(
            instruction, {"actor": person}, "", dry_run=False, approve="never", sandbox=False, viewport=viewport,
            bundle=str(bundle),
        ))  # fmt: skip
        steps = await asyncio.to_thread(_follow, desktop, log, looker, stop, emit)
        emit(await watch.look(_RECEIPT, _SETTLE))
        watch.end()
    emit(events.RunFinished(
        "done", ExitStatus.DONE, "You ended the recording.", steps, time.monotonic() - began, Usage()
    ))  # fmt: skip


def _follow(desktop: Desktop, log: InputLog, looker: "_Looker", stop: StopSwitch, emit: Emit) -> int:
    """Note what happens until `stop` is set; return the number of steps."""
    with ExitStack() as opened:
        windows, elements = desktop.open_windows(), desktop.open_elements()
        if windows is None or elements is None:
            raise _UNWATCHED
        opened.enter_context(closing(windows))
        opened.enter_context(closing(elements))
        notes = Notes(looker.seen, looker.owns, windows, elements, emit, looker.caption)
        while (happened := log.next(0 if stop.stopped else _IDLE)) is not None or not stop.stopped:
            if isinstance(happened, KeyPressed) and {*happened.held, happened.key} == _STOP:
                stop.stop("the stop key was pressed")
            elif happened is None:
                notes.idle()
            else:
                notes.handle(happened)
        notes.flush()
        return notes.steps


class _Looker:
    """Looks at the screen again and again on a thread of its own, without our own windows. A context manager."""

    def __init__(self, desktop: Desktop) -> None:
        self._languages, _ = reading_languages(os.environ)
        self._eye = Eye(desktop, self._languages, words=False)
        self._ocr: Ocr | None = None
        self.owns = self._eye.owns
        self._seen: _Seen | None = None
        self._error: Exception | None = None
        self._fresh, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._look, name="looker", daemon=True)

    def __enter__(self) -> "_Looker":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def first(self) -> _Seen:
        """Wait for the first look. Raises EnvironmentLacksError if the screen cannot be seen."""
        self._fresh.wait()
        if self._seen is None:
            raise EnvironmentLacksError(f"The screen cannot be read ({self._error}).", "`mai-agent doctor` says more.")
        return self._seen

    def seen(self) -> _Seen | None:
        """Return the newest look."""
        return self._seen

    def caption(self, frame: Frame, point: DesktopPoint) -> str:
        """Return the text at a point that the desktop does not name; "" if none can be read."""
        at = frame.viewport.desktop_to_capture(point)
        with suppress(EnvironmentLacksError):  # without tesseract's data, its picture alone is recorded
            self._ocr = self._ocr or Ocr("Reading what is clicked", self._languages)
            return caption_at(frame.image, at.x, at.y, self._ocr, max(1.0, frame.viewport.scale[0])).text
        return ""

    def _look(self) -> None:
        with closing(self._eye):
            while not self._ended.wait(_BETWEEN_LOOKS if self._seen else 0):
                began = time.monotonic()
                try:
                    self._seen = _Seen(*self._eye.look(), began)
                except Exception as error:  # the next look may succeed; the first one is reported
                    self._error = error
                self._fresh.set()


class Notes:
    """Turns input into the steps of a run. Used from one thread, which owns the connections `windows` and `elements`.

    `seen` returns the newest look at the screen. Input in our own windows, as told by `owns`, is not recorded.
    `caption` reads the text at a point, for clicks on what has no name.
    """

    def __init__(
        self, seen: Callable[[], _Seen | None], owns: Callable[[Window | None], bool], windows: Windows,
        elements: Elements, emit: Emit, caption: Callable[[Frame, DesktopPoint], str] = lambda *_: "",
    ) -> None:  # fmt: skip
        self._caption = caption
        self._seen, self._owns, self._windows, self._elements, self._emit = seen, owns, windows, elements, emit
        self._deed: _Deed | None = None
        self._changed = 0.0  # `time.monotonic()` of the last input; looks that began earlier are outdated
        self.steps = 0

    def handle(self, happened: PersonInput) -> None:
        """Note one input."""
        windows = self._windows
        window = windows.active() if isinstance(happened, KeyPressed) else windows.at(*happened.at.rounded())
        if self._owns(window):
            self.flush()
            return
        now = time.monotonic()
        match happened, self._deed:
            case ButtonPressed(at, button), _Deed(Click(DesktopPoint() as first, last, count)) as deed if (
                now - deed.last < _DOUBLE and last == button and _distance(first, at) <= _NEAR
            ):
                deed.action = Click(first, button, count + 1)
            case ButtonPressed(at, button, held), _:
                self._begin(Click(at, button, held=held), window, at)
            case ButtonReleased(at), _Deed(Click(DesktopPoint() as start, _, 1, held)) as deed:
                if _distance(start, at) > _DRAGS:
                    deed.action = Drag(start, at, held)
            case ButtonReleased(), _:
                return
            case WheelTurned(_, dx, dy), _Deed(Scroll(at, x, y)) as deed if x * dx + y * dy > 0:
                deed.action = Scroll(at, x + dx, y + dy)
            case WheelTurned(at, dx, dy), _:
                self._begin(Scroll(at, dx, dy), window, at)
            case KeyPressed("backspace", held=()), _Deed(TypeText(text)) as deed if text:
                deed.action = TypeText(text[:-1])
            case KeyPressed(_, " "), deed if (
                not _types(deed) and (pressed := self._pressed_by_space(window)) is not None
            ):
                self._begin(Click(pressed.box.middle), window, pressed.box.middle)
            case KeyPressed(key, text), _ if text or not key:
                self._type(text or _DEAD, window)
            case KeyPressed(key, _, held), _:
                self._begin(PressKeys((*held, key)), window, None)
        if self._deed is not None:
            self._deed.last = now
        self._changed = now

    def _pressed_by_space(self, window: Window | None) -> Element | None:
        """Return the control that Space has pressed: it is recorded as a click, because a recipe finds it by its name.

        It must keep the focus. What opens or closes a window is recorded as a key.
        """
        element, seen = _of_window(self._elements.focused(), window), self._seen()
        if element is None or element.role not in _PRESSED:
            return None
        before = [one for one in seen.outline.elements if "focused" in one.states] if seen is not None else []
        same = any((one.role, one.name) == (element.role, element.name) for one in before)
        return element if same or element.role in _SWITCHES else None

    def _type(self, text: str, window: Window | None) -> None:
        deed = self._deed
        if deed is not None and isinstance(deed.action, TypeText):
            self._check_shown()
            deed.action = TypeText(deed.action.text + text)
        else:
            self._begin(TypeText(text), window, None)

    def idle(self) -> None:
        """Note that nothing happened for a moment."""
        self._check_shown()
        deed = self._deed
        if deed is not None and not isinstance(deed.action, TypeText) and time.monotonic() - deed.last > _DOUBLE:
            self.flush()

    def _check_shown(self) -> bool:
        """Check whether the field shows the text; its last character may be missing."""
        deed = self._deed
        if deed is None or not isinstance(deed.action, TypeText):
            return True
        text, field, seen = deed.action.text, self._elements.field_text(), self._seen()
        looked = [one.value or "" for one in seen.outline.elements if "focused" in one.states] if seen else []
        texts = [field.text, *looked] if field is not None else looked
        deed.read = next((read for read in (text, text[:-1]) if read and any(read in one for one in texts)), deed.read)
        return deed.is_shown

    def _begin(self, action: Action[DesktopPoint], window: Window | None, at: DesktopPoint | None) -> None:
        """Begin an action, and ask for its target at once, before it takes effect.

        A late answer may name something that the action opened, so it must agree with the last look.
        """
        seen = self._seen()
        ask = self._elements.focused if at is None else partial(self._elements.at, at)
        element = prompt = _of_window(_patiently(ask, _PROMPT), window)
        before = self._deed
        self.flush()
        outline = seen.outline if seen is not None else None
        if at is not None:
            described = described_at(outline, at)
        else:
            typing = isinstance(action, TypeText)
            described = described_field(outline, element.box if element is not None else None) if typing else None
        if seen is None or seen.began <= self._changed:  # something was done since that look
            element = element or _of_window(_patiently(ask, _LATE), window)
            described = described if _agree(described, element) else None
            element = element if described is not None else prompt
        elif at is not None and window is not None:  # its title before the click, which may already have changed it
            seen_window = next((one for one in seen.outline.windows if one.box.contains(at)), None)
            if seen_window is not None and seen_window.app == window.app:
                window = replace(window, title=seen_window.title)
        if isinstance(action, PressKeys) and window is not None:
            window = _pressed_in(window, seen, before, fresh=seen is not None and seen.began > self._changed)
            element = None if element is not None and element.window not in ("", window.title) else element
        self._deed = _Deed(action, seen, element, described, window, time.monotonic())

    def flush(self) -> None:
        """Report the pending action."""
        deed = self._deed
        if deed is not None and not deed.is_shown:
            _patiently(self._check_shown, _PROMPT)
        self._deed = None
        if deed is None or deed.action == TypeText(""):
            return
        self.steps += 1
        step, seen, target = self.steps, deed.seen, deed.action
        if isinstance(target, TypeText) and not deed.is_shown:
            target = TypeText(f"[redacted {len(target.text)} chars]")
        aim = _aim(deed)
        if seen is not None and not aim.names[0] and isinstance(target, Click) and target.point is not None:
            aim = replace(aim, names=(f"“{words}”" if (words := self._caption(seen.frame, target.point)) else "",))
        if seen is not None:
            image = encode(seen.frame.image, "png")
            self._emit(events.Observed(step, (image,), seen.frame.viewport, 0, image.digest, {}))
        self._emit(events.Decided(step, "", "", (), (), (target,), None, Usage(), {}))
        self._emit(events.Acted(
            step, target, executed=True, dry_run=False, detail=named(target, aim), error=None, milliseconds=0.0,
            elements=(deed.element,) if deed.element is not None else (), aim=aim, described=deed.described,
        ))  # fmt: skip
        self._emit(events.StepFinished(step, None, None, None, {}))


def _pressed_in(window: Window, seen: _Seen | None, before: _Deed | None, *, fresh: bool) -> Window:
    """Return the window that got a key: what the key opens or closes may have changed which one is in front."""
    if fresh and seen is not None:
        front = next((one for one in seen.outline.windows if one.active), None)
        return replace(window, title=front.title) if front is not None and front.app == window.app else window
    if before is None or before.window is None or not isinstance(before.action, TypeText):
        return window
    return before.window if before.window.app == window.app else window  # typing opened no other window


def _patiently(ask: Callable[[], T], seconds: float) -> T:
    """Ask again for a while if there is no answer: on a busy machine, an application needs longer than one question."""
    until = time.monotonic() + seconds
    while not (answer := ask()) and time.monotonic() < until:
        pass
    return answer


def _of_window(element: Element | None, window: Window | None) -> Element | None:
    """Return the element if the window's application owns it; otherwise the action has opened something else there."""
    other = element is not None and window is not None and element.app and window.app and element.app != window.app
    return None if other else element


def _agree(described: Described | None, element: Element | None) -> bool:
    if described is None or element is None:
        return False
    return (described.element.role, described.element.name) == (element.role, element.name)


def _aim(deed: _Deed) -> Aim:
    title, app = (deed.window.title, deed.window.app) if deed.window is not None else ("", "")
    element = deed.element or (deed.described.element if deed.described is not None else None)
    name = f"“{element.name or element.label}”" if element is not None and (element.name or element.label) else ""
    field = element.box if element is not None and isinstance(deed.action, TypeText) else None
    return Aim((name,), title, None, field, app)


def _types(deed: _Deed | None) -> bool:
    return deed is not None and isinstance(deed.action, TypeText)


def _distance(one: DesktopPoint, other: DesktopPoint) -> float:
    return max(abs(one.x - other.x), abs(one.y - other.y))
