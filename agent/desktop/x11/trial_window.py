"""The window of a trial on X11, in plain Xlib."""

import time
from collections import deque
from contextlib import ExitStack
from typing import Any

from agent.core.geometry import Size
from agent.desktop.linux.xkb import character_of, name_of
from agent.desktop.trial.pattern import Pattern
from agent.desktop.trial.report import Report
from agent.desktop.x11.connection import open_display, telling_loss, tells_loss, text_of
from agent.desktop.x11.saved_selections import saved

TITLE, APP = "mai-agent doctor", "mai-agent-doctor"
_SIZE = Size(640, 480)
_BUTTONS = {1: "left", 2: "middle", 3: "right"}
_WHEEL = {4: (0, -1), 5: (0, 1), 6: (-1, 0), 7: (1, 0)}  # right and down
#: Bits of an event's state (X11 protocol), by our names; the first layout's bit follows at 13.
_MODIFIERS = {0: "shift", 2: "ctrl", 3: "alt", 6: "super"}
#: Seconds that whoever holds the clipboard has for handing it over.
_PATIENCE = 1.0


@tells_loss
class X11Window:
    """See `Shown`; for its arguments, those of the window on Wayland, without a socket."""

    def __init__(self, pattern: Pattern, copied: str, report: Report) -> None:
        from Xlib import X

        self._pattern, self._copied, self._report = pattern, copied.encode(), report
        self._turned, self._size, self._there, self._mapped = False, _SIZE, False, False
        self._kept = ExitStack()
        self._waiting: deque[Any] = deque()
        self._display = display = open_display()
        screen = display.screen()
        self._window = screen.root.create_window(
            0, 0, _SIZE.width, _SIZE.height, 0, screen.root_depth,
            event_mask=X.KeyPressMask | X.KeyReleaseMask | X.ButtonPressMask | X.ButtonReleaseMask | X.LeaveWindowMask
            | X.EnterWindowMask | X.PointerMotionMask | X.ExposureMask | X.StructureNotifyMask | X.FocusChangeMask,
        )  # fmt: skip
        self._window.set_wm_name(TITLE)
        self._window.set_wm_class(APP, APP)
        self._window.set_wm_hints(flags=1, input=1)  # it wants the focus (ICCCM 4.1.2.4)
        self._drawing = self._window.create_gc()
        self._window.map()
        display.flush()
        report.copy, report.paste = self._copy, self._paste

    def fileno(self) -> int:
        return int(self._display.fileno())

    def take(self) -> None:
        while self._waiting or self._display.pending_events():
            self._event(self._waiting.popleft() if self._waiting else self._display.next_event())

    def turn(self) -> None:
        self._turned = not self._turned
        self._draw("turned")

    def end(self) -> bool:
        """See `Shown.end`: another process serves the clipboard then, where it held something."""
        self._window.unmap()
        self._display.sync()
        self._kept.close()
        return False

    def close(self) -> None:
        with telling_loss():
            self._display.close()

    def _draw(self, kind: str) -> None:
        for cell, (red, green, blue) in self._pattern.cells(self._size, turned=self._turned):
            self._drawing.change(foreground=red << 16 | green << 8 | blue)
            self._window.fill_rectangle(self._drawing, cell.left, cell.top, cell.width, cell.height)
        self._display.sync()
        self._report.tell(kind, width=self._size.width, height=self._size.height, turned=self._turned)

    def _event(self, event: Any) -> None:
        from Xlib import X

        match event.type:
            case X.ConfigureNotify:
                self._size = Size(event.width, event.height)
            case X.MapNotify:
                self._take_focus()
            case X.Expose if event.count == 0:
                self._draw("turned" if self._there else "there")
                self._there = True
            case X.MotionNotify | X.EnterNotify:
                self._report.tell("motion", x=event.event_x, y=event.event_y)
            case X.LeaveNotify:
                self._report.tell("left")
            case X.ButtonPress | X.ButtonRelease:
                self._button(event, down=event.type == X.ButtonPress)
            case X.KeyPress | X.KeyRelease:
                self._key(event, down=event.type == X.KeyPress)
            case X.FocusIn | X.FocusOut:
                self._report.tell("focus", here=event.type == X.FocusIn)
            case X.SelectionRequest:
                self._answer(event)
            case X.MappingNotify:
                self._display.refresh_keyboard_mapping(event)

    def _take_focus(self) -> None:
        """Where no window manager gives it; the others do with this what they think right."""
        from Xlib import X, error

        self._window.set_input_focus(X.RevertToParent, X.CurrentTime, onerror=error.CatchError(error.BadMatch))
        self._display.sync()

    def _button(self, event: Any, *, down: bool) -> None:
        if event.detail in _WHEEL:
            if down:
                right, below = _WHEEL[event.detail]
                self._report.tell("wheel", right=right, down=below)
            return
        name = _BUTTONS.get(event.detail, str(event.detail))
        self._report.tell("press" if down else "release", button=name, x=event.event_x, y=event.event_y)

    def _key(self, event: Any, *, down: bool) -> None:
        modifiers = [name for bit, name in _MODIFIERS.items() if event.state >> bit & 1]
        column = 2 * (event.state >> 13 & 3) + ("shift" in modifiers)
        keysym = self._display.keycode_to_keysym(event.detail, column)
        keysym = keysym or self._display.keycode_to_keysym(event.detail, column & ~1)
        self._report.key(name_of(keysym), modifiers, character_of(keysym), down=down)

    def _copy(self) -> None:
        from Xlib import X

        self._kept.enter_context(saved(self._display, ["CLIPBOARD"]))
        self._window.set_selection_owner(self._display.intern_atom("CLIPBOARD"), X.CurrentTime)
        self._display.sync()
        self._report.tell("copied")

    def _paste(self) -> None:
        """Ask whoever has the clipboard for its text."""
        from Xlib import X

        atom = self._display.intern_atom
        self._window.convert_selection(atom("CLIPBOARD"), atom("UTF8_STRING"), atom("MAI_AGENT"), X.CurrentTime)
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            if not self._display.pending_events():
                time.sleep(0.005)
                continue
            event = self._display.next_event()
            if event.type != X.SelectionNotify:
                self._waiting.append(event)
                continue
            told = self._window.get_full_property(event.property, X.AnyPropertyType) if event.property else None
            self._report.enter(text_of(told.value) if told else "")
            return

    def _answer(self, request: Any) -> None:
        """Hand over what was copied."""
        from Xlib import Xatom
        from Xlib.protocol import event

        atom = self._display.intern_atom
        kinds, where = (atom("UTF8_STRING"), Xatom.STRING), request.property or request.target
        if request.target == atom("TARGETS"):
            request.requestor.change_property(where, Xatom.ATOM, 32, [atom("TARGETS"), *kinds])
        elif request.target in kinds:
            request.requestor.change_property(where, request.target, 8, self._copied)
        else:
            where = 0
        request.requestor.send_event(
            event.SelectionNotify(
                time=request.time, requestor=request.requestor, selection=request.selection,
                target=request.target, property=where,
            )
        )  # fmt: skip
        self._display.flush()
