"""Fields of Tk: `tk_fields.py STATE`. Commands come on standard input: the number of a reset, one a line."""

import sys
import tkinter
from tkinter import ttk

import state

window = tkinter.Tk()
window.title("Tk")
window.geometry("{}x{}".format(*state.SIZE))
holders = {name: tkinter.StringVar() for name in ("entry", "password", "spin", "combo")}
fields = {
    "entry": tkinter.Entry(window, textvariable=holders["entry"]),
    "password": tkinter.Entry(window, textvariable=holders["password"], show="*"),
    "spin": tkinter.Spinbox(window, from_=0, to=100000, textvariable=holders["spin"]),
    "combo": ttk.Combobox(window, values=["first choice", "second choice"], textvariable=holders["combo"]),
    "text": tkinter.Text(window, undo=True),
}
for name, field in fields.items():
    field.place(x=state.LEFT, y=state.TOPS[name], width=state.WIDTH, height=state.HEIGHTS[name])
entered = [""]


def enter(*_):
    entered[0] = holders["entry"].get()
    state.write(values())


def values():
    text = fields["text"].get("1.0", "end-1c")
    return {**{name: holder.get() for name, holder in holders.items()}, "text": text, "entered": entered[0]}


def reset(number=None):
    for name, holder in holders.items():
        holder.set(state.BEGIN[name])
    fields["text"].delete("1.0", "end")
    fields["text"].insert("1.0", state.BEGIN["text"])
    entered[0] = ""
    state.write(values(), number)


def command(*_):
    line = sys.stdin.readline()
    window.destroy() if not line else reset(int(line))


def changed(*_):
    fields["text"].edit_modified(False)
    state.write(values())


for holder in holders.values():
    holder.trace_add("write", lambda *_: state.write(values()))
fields["text"].bind("<<Modified>>", changed)
fields["entry"].bind("<Return>", enter)
window.createfilehandler(sys.stdin, tkinter.READABLE, command)
window.update()
reset()
window.mainloop()
