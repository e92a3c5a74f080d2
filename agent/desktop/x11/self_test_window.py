"""The window of the self-test on X11: python -m agent.desktop.x11.self_test_window NUMBER."""

import time
from collections import deque
from typing import Any

from agent.core.geometry import Size
from agent.desktop.linux.xkb import character_of, name_of
from agent.desktop.self_test.capture import Pattern
from agent.desktop.self_test.window_program import APP, TITLE, Shown, serve
from agent.desktop.x11.connection import open_display, tells_loss, text_of

_BUTTONS = {1: "left", 2: "middle", 3: "right"}
_WHEEL = {4: (0, -1), 5: (0, 1), 6: (-1, 0), 7: (1, 0)}  # right and down
#: Bits of an event's state (X11 protocol) and our names for them. The layout's number begins at bit 13.
_MODIFIERS = {0: "shift", 2: "ctrl", 3: "alt", 6: "super"}
#: Seconds for the clipboard's owner to answer.
_PATIENCE = 1.0


@tells_loss
class X11Window(Shown):
    """A window drawn with Xlib."""

    def __init__(self, pattern: Pattern) -> None:
        from Xlib import X

        super().__init__(pattern)
        self._waiting: deque[Any] = deque()
        self._display = display = open_display()
        screen = display.screen()
        self._window = screen.root.create_window(
            0, 0, self.size.width, self.size.height, 0, screen.root_depth,
            event_mask=X.KeyPressMask | X.KeyReleaseMask | X.ButtonPressMask | X.ButtonReleaseMask | X.LeaveWindowMask
            | X.EnterWindowMask | X.PointerMotionMask | X.ExposureMask | X.StructureNotifyMask | X.FocusChangeMask,
        )  # fmt: skip
        self._window.set_wm_name(TITLE)
        self._window.set_wm_class(APP, APP)
        self._window.set_wm_hints(flags=1, input=1)  # it wants the focus (ICCCM 4.1.2.4)
        self._drawing = self._window.create_gc()
        self._window.map()
        display.sync()  # `flush` returns without having sent anything if the socket takes nothing at that moment

    def fileno(self) -> int:
        return int(self._display.fileno())

    def take(self) -> None:
        while self._waiting or self._display.pending_events():
            self._event(self._waiting.popleft() if self._waiting else self._display.next_event())

    def draw(self) -> None:
        red, green, blue = self.pattern.colours[self.turned]
        self._drawing.change(foreground=red << 16 | green << 8 | blue)
        self._window.fill_rectangle(self._drawing, 0, 0, self.size.width, self.size.height)
        self._display.sync()
        self.drawn(turned=self.turned)

    def clipboard(self) -> str:
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
            reply = self._window.get_full_property(event.property, X.AnyPropertyType) if event.property else None
            return text_of(reply.value) if reply else ""
        return ""

    def close(self) -> None:
        self._display.close()

    def _event(self, event: Any) -> None:
        from Xlib import X

        match event.type:
            case X.ConfigureNotify:
                self.size = Size(event.width, event.height)
            case X.MapNotify:
                self._take_focus()
            case X.Expose if event.count == 0:
                self.draw()
            case X.MotionNotify | X.EnterNotify:
                self.tell("motion", x=event.event_x, y=event.event_y)
            case X.LeaveNotify:
                self.tell("left")
            case X.ButtonPress | X.ButtonRelease:
                self._button(event, down=event.type == X.ButtonPress)
            case X.KeyPress | X.KeyRelease:
                self._key(event, down=event.type == X.KeyPress)
            case X.FocusIn | X.FocusOut:
                self.tell("focus", here=event.type == X.FocusIn)
            case X.MappingNotify:
                self._display.refresh_keyboard_mapping(event)

    def _take_focus(self) -> None:
        """Take the focus, in case there is no window manager to give it."""
        from Xlib import X, error

        self._window.set_input_focus(X.RevertToParent, X.CurrentTime, onerror=error.CatchError(error.BadMatch))
        self._display.sync()

    def _button(self, event: Any, *, down: bool) -> None:
        if event.detail in _WHEEL:
            if down:
                right, below = _WHEEL[event.detail]
                self.tell("wheel", right=right, down=below)
            return
        name = _BUTTONS.get(event.detail, str(event.detail))
        self.tell("press" if down else "release", button=name, x=event.event_x, y=event.event_y)

    def _key(self, event: Any, *, down: bool) -> None:
        modifiers = [name for bit, name in _MODIFIERS.items() if event.state >> bit & 1]
        column = 2 * (event.state >> 13 & 3) + ("shift" in modifiers)
        keysym = self._display.keycode_to_keysym(event.detail, column)
        keysym = keysym or self._display.keycode_to_keysym(event.detail, column & ~1)
        self.key(name_of(keysym), modifiers, character_of(keysym), down=down)


if __name__ == "__main__":
    serve(X11Window)
