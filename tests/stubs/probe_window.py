"""A GTK window that fills its monitor and tells every event that reaches it, and its own state, as lines of JSON.

/usr/bin/python3 probe_window.py FILE [TITLE]

At the top an entry of 60 pixels; below, an area that turns its colour at every press of a button.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import gi

gi.require_version("Gdk", "3.0")
gi.require_version("Gtk", "3.0")
from gi.repository import Gdk, GLib, Gtk  # noqa: E402

COLOURS = ((0.1, 0.2, 0.8), (0.9, 0.1, 0.1))
log = Path(sys.argv[1]).open("a", buffering=1, encoding="utf-8")  # noqa: SIM115
window = Gtk.Window(title=sys.argv[2] if len(sys.argv) > 2 else "probe")
window.fullscreen()
box = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
entry = Gtk.Entry()
entry.set_size_request(-1, 60)
area = Gtk.EventBox()
# Of single steps of a wheel, GTK 3 takes left for right on Wayland; on X11 without a real mouse it tells no others.
wayland = "wayland" in os.environ.get("GDK_BACKEND", "")
unwanted = Gdk.EventMask.SCROLL_MASK if wayland else Gdk.EventMask.SMOOTH_SCROLL_MASK
area.add_events(Gdk.EventMask.ALL_EVENTS_MASK & ~unwanted)
box.pack_start(entry, False, False, 0)
box.pack_start(area, True, True, 0)
window.add(box)
colour = [0]


def tell(kind: str, **more: Any) -> None:
    log.write(json.dumps({"kind": kind, **more}) + "\n")


def place(event: Any) -> dict[str, float]:
    at = area.translate_coordinates(window, 0, 0)
    return {"x": event.x + at[0], "y": event.y + at[1]}


def pressed(_: Any, event: Any) -> None:
    if event.type == Gdk.EventType.BUTTON_PRESS:
        colour[0] = 1 - colour[0]
        paint()
    counts = {Gdk.EventType.BUTTON_PRESS: 1, Gdk.EventType._2BUTTON_PRESS: 2, Gdk.EventType._3BUTTON_PRESS: 3}
    tell("press", button=event.button, count=counts[event.type], state=int(event.state), **place(event))


def paint() -> None:
    area.override_background_color(Gtk.StateFlags.NORMAL, Gdk.RGBA(*COLOURS[colour[0]], 1))


def scrolled(_widget: Any, event: Any) -> None:
    way, steps = event.direction.value_nick, 1
    if event.direction == Gdk.ScrollDirection.SMOOTH:
        _, right, down = event.get_scroll_deltas()
        way = ("right" if right > 0 else "left") if right else ("down" if down > 0 else "up")
        if not wayland:
            steps = round(abs(right or down))  # GTK adds up the steps that are in its queue at once
    for _ in range(steps):
        tell("scroll", way=way)


def key(_: Any, event: Any, kind: str) -> bool:
    tell(kind, name=Gdk.keyval_name(event.keyval), code=event.hardware_keycode - 8, state=int(event.state))
    return False


def moved(_: Any, event: Any) -> None:
    at = place(event)["x"], place(event)["y"]
    known[:] = at
    tell("motion", state=int(event.state), x=at[0], y=at[1])


def look() -> bool:
    """On Wayland GTK 3 may keep a last movement that came while it drew until the next event: its place is known."""
    if not known:  # asked about a mouse that is not there yet, GTK tells nothing of it later (GNOME 48)
        return True
    pointer = window.get_display().get_default_seat().get_pointer()
    _, x, y, state = window.get_window().get_device_position_double(pointer)
    if known != [x, y] and y >= 60:
        known[:] = x, y
        tell("motion", state=int(state), x=x, y=y)
    return True


known: list[float] = []
paint()
area.connect("motion-notify-event", moved)
if wayland:
    GLib.timeout_add(100, look)
area.connect("button-press-event", pressed)
area.connect("button-release-event", lambda _, event: tell("release", button=event.button, **place(event)))
area.connect("scroll-event", scrolled)
entry.connect("changed", lambda _: tell("text", text=entry.get_text()))
entry.connect("activate", lambda _: tell("enter"))
window.connect("key-press-event", key, "key")
window.connect("key-release-event", key, "key up")
window.connect("destroy", Gtk.main_quit)
window.show_all()
entry.grab_focus()
GLib.timeout_add(300, lambda: tell("there", width=window.get_size()[0], height=window.get_size()[1]))
Gtk.main()
