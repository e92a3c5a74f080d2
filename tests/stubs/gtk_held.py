"""A GTK window that tells at every change what is selected, where its slider stands.

python3 gtk_held.py FILE
"""

import json
import sys
from pathlib import Path
from typing import Any

import gi

gi.require_version("Gtk", "3.0")
from gi.repository import GLib, Gtk  # noqa: E402

log = Path(sys.argv[1]).open("a", buffering=1, encoding="utf-8")  # noqa: SIM115
window = Gtk.Window(type=Gtk.WindowType.POPUP)  # where no window manager is, this one is where it says
window.set_default_size(800, 600)
window.move(50, 50)
box = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
store = Gtk.ListStore(str)
for number in range(5):
    store.append([f"row {number}"])
tree = Gtk.TreeView(model=store, headers_visible=False)
tree.append_column(Gtk.TreeViewColumn("", Gtk.CellRendererText(), text=0))
tree.get_selection().set_mode(Gtk.SelectionMode.MULTIPLE)
slider = Gtk.Scale.new_with_range(Gtk.Orientation.HORIZONTAL, 0, 100, 1)
box.pack_start(tree, False, False, 0)
box.pack_start(slider, False, False, 0)
window.add(box)
window.show_all()


def tell(*_: object) -> None:
    chosen = tree.get_selection().get_selected_rows()[1]
    log.write(json.dumps({"rows": [path[0] for path in chosen], "slider": slider.get_value()}) + "\n")


def place(widget: Any, x: int, y: int) -> list[int]:
    at = widget.translate_coordinates(window, x, y)
    return [50 + at[0], 50 + at[1]]


def told_places() -> None:
    areas = [tree.get_cell_area(Gtk.TreePath(number), tree.get_column(0)) for number in range(5)]
    rows = [
        place(tree, *tree.convert_bin_window_to_widget_coords(one.x + 30, one.y + one.height // 2)) for one in areas
    ]
    knob = slider.get_range_rect()
    start = place(slider, knob.x + 8, knob.y + knob.height // 2)
    log.write(json.dumps({"rows": rows, "slider": start}) + "\n")


tree.get_selection().connect("changed", tell)
slider.connect("value-changed", tell)
GLib.timeout_add(300, told_places)
Gtk.main()
