"""Shows the self-test window on X11 or Wayland, in two colours, and prints its events as lines of JSON.

The window has a process of its own, so that it is a client of the desktop like any other. It runs in any Python that
has `gi`, and imports nothing of ours. Standard input says "turn" or "clear", and ends or says "end".
"""

import json
import os
import sys
from typing import Any

os.environ.setdefault("XDG_RUNTIME_DIR", "/nowhere")  # GTK wants it even where WAYLAND_DISPLAY is a path
try:
    import gi

    for name in ("Gdk", "Gtk"):
        gi.require_version(name, "3.0")
    from gi.repository import Gdk, GLib, Gtk
except (ImportError, ValueError) as error:
    print(json.dumps({"kind": "failed", "why": f"it needs python3-gi and gir1.2-gtk-3.0 ({error})"}))
    raise SystemExit(1) from None

_BUTTONS = {1: "left", 2: "middle", 3: "right"}
_WAYS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
_MODIFIERS = {"alt": 1 << 3, "ctrl": 1 << 2, "shift": 1, "super": 1 << 6}  # Gdk.ModifierType
_EVENTS = ("motion-notify", "enter-notify", "leave-notify", "button-press", "button-release", "scroll", "focus-in",
           "focus-out", "key-press", "key-release")  # fmt: skip


class Window(Gtk.Window):  # type: ignore[misc]  # GTK is not in our environment
    """The window, of one colour; it reports what it shows once that is on the screen."""

    def __init__(self, colours: list[str]) -> None:
        super().__init__(title="mai-agent doctor", decorated=False)
        self._colours, self._text, self._told, self._style = colours, "", "", Gtk.CssProvider()
        Gtk.StyleContext.add_provider_for_screen(self.get_screen(), self._style, 800)
        self.set_default_size(640, 480)
        no_hints = Gdk.EventMask.SMOOTH_SCROLL_MASK | Gdk.EventMask.POINTER_MOTION_HINT_MASK
        self.add_events(Gdk.EventMask.ALL_EVENTS_MASK & ~no_hints)
        # On Wayland, GTK 3 mistakes left for right in events of single steps.
        self._across = -1 if "Wayland" in type(self.get_display()).__name__ else 1
        for name in _EVENTS:
            self.connect(f"{name}-event", self._heard, name)
        self._paint()
        self.show_all()
        self.get_frame_clock().connect("after-paint", self._shown)
        GLib.io_add_watch(0, GLib.IO_IN | GLib.IO_HUP, self._obey)

    def _paint(self) -> None:
        self._style.load_from_data(f"* {{ background: {self._colours[0]}; }}".encode())

    def _shown(self, _: object) -> None:
        width, height = self.get_size()
        if not self._told:  # no window manager may be there to give it the focus
            self.get_window().focus(Gdk.CURRENT_TIME)
        if self._told != (state := f"{self._colours[0]} {width}x{height}"):
            tell("turned" if self._told else "there", width=width, height=height)
            self._told = state

    def _heard(self, _: object, event: Any, name: str) -> bool:
        match name:
            case "motion-notify" | "enter-notify":
                tell("motion", x=event.x, y=event.y)
            case "leave-notify":
                tell("left")
            case "button-press" | "button-release":
                tell(name.removeprefix("button-"), button=_BUTTONS.get(event.button, "?"), x=event.x, y=event.y)
            case "scroll" if event.direction.value_nick in _WAYS:  # GTK also sends smooth scroll events
                right, down = _WAYS[event.direction.value_nick]
                tell("wheel", right=right * self._across, down=down)
            case "focus-in" | "focus-out":
                tell("focus", here=name == "focus-in")
            case "key-press" | "key-release":
                self._key(event, down=name == "key-press")
        return True  # else GTK would call this again

    def _key(self, event: Any, *, down: bool) -> None:
        name, modifiers = Gdk.keyval_name(event.keyval), [one for one, mask in _MODIFIERS.items() if event.state & mask]
        tell("key" if down else "key up", name=name, modifiers=modifiers)
        entered = chr(Gdk.keyval_to_unicode(event.keyval)) if {*modifiers} <= {"shift"} else ""
        if ("ctrl" in modifiers and name.lower() == "v") or (modifiers == ["shift"] and name == "Insert"):
            entered = Gtk.Clipboard.get(Gdk.SELECTION_CLIPBOARD).wait_for_text() or "" if down else ""
        if down and entered and entered.isprintable():
            self._text += entered
            tell("text", text=self._text)

    def _obey(self, *_: object) -> bool:
        word = sys.stdin.readline().strip()
        if word == "turn":
            self._colours.reverse()
            self._paint()
        elif word == "clear":
            self._text = ""
            tell("cleared")
        else:
            Gtk.main_quit()
        return True


def tell(kind: str, **more: Any) -> None:
    """Print an event."""
    print(json.dumps({"kind": kind, **more}), flush=True)


if __name__ == "__main__":
    GLib.set_prgname("mai-agent-doctor")
    Gdk.set_program_class("mai-agent-doctor")
    if Gtk.init_check()[0]:
        shown = Window(sys.argv[1:])
        Gtk.main()
    else:
        tell("failed", why="its display takes no connection")
