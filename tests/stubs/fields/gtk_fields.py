"""Fields of GTK: `gtk_fields.py STATE 3|4`. Commands come on standard input: the number of a reset, one a line."""

import sys

import gi
import state

VERSION = sys.argv[2]
gi.require_version("Gtk", VERSION + ".0")
from gi.repository import GLib, Gtk  # noqa: E402

four = VERSION == "4"
Gtk.init() if four else Gtk.init([])
window = Gtk.Window(title="GTK " + VERSION)
window.set_default_size(*state.SIZE)
window.set_decorated(False)
window.set_resizable(False)
fixed = Gtk.Fixed()
window.set_child(fixed) if four else window.add(fixed)
entry, password = Gtk.Entry(), Gtk.PasswordEntry() if four else Gtk.Entry(visibility=False)
spin = Gtk.SpinButton.new_with_range(0, 100000, 1)
combo = Gtk.ComboBoxText.new_with_entry()
for choice in ("first choice", "second choice"):
    combo.append_text(choice)
text = Gtk.TextView()
buffer = text.get_buffer()
fields = {"entry": entry, "password": password, "spin": spin, "combo": combo, "text": text}
for name, field in fields.items():
    field.set_size_request(state.WIDTH, state.HEIGHTS[name])
    fixed.put(field, state.LEFT, state.TOPS[name])
inner = combo.get_child()
entered = [""]


def enter(*_):
    entered[0] = entry.get_text()
    state.write(values())


entry.connect("activate", enter)


def values():
    return {
        "entry": entry.get_text(),
        "password": password.get_text(),
        "spin": spin.get_text(),
        "combo": inner.get_text(),
        "entered": entered[0],
        "text": buffer.get_text(buffer.get_start_iter(), buffer.get_end_iter(), True),
    }


def reset(number=None):
    for name, field in (("entry", entry), ("password", password), ("spin", spin), ("combo", inner)):
        field.set_text(state.BEGIN[name])
    buffer.set_text(state.BEGIN["text"])
    entered[0] = ""
    state.write(values(), number)


def command(*_):
    line = sys.stdin.readline()
    if not line:
        raise SystemExit
    reset(int(line))
    return True


for field in (entry, password, spin, inner, buffer):
    field.connect("changed", lambda *_: state.write(values()))
GLib.io_add_watch(0, GLib.IOCondition.IN | GLib.IOCondition.HUP, command)
window.present() if four else window.show_all()
reset()
GLib.MainLoop().run()
