#!/usr/bin/python3
"""A small notebook: notes with a title and a text, kept in a file of the home. GTK 3."""

import json
import os
import sys

import gi

gi.require_version("Gtk", "3.0")
from gi.repository import Gtk  # noqa: E402 -- after the version is chosen

FILE = os.path.expanduser(sys.argv[1] if len(sys.argv) > 1 else "~/notes.json")


class Notes(Gtk.Window):
    """The only window: a list on the left, the chosen note on the right."""

    def __init__(self):
        super().__init__(title="Notes", default_width=720, default_height=420)
        self.notes = self.load()
        self.shown = None
        self.search = Gtk.SearchEntry(placeholder_text="Search")
        self.search.get_accessible().set_name("Search")
        self.search.connect("search-changed", lambda _: self.fill())
        self.rows = Gtk.ListBox()
        self.rows.connect("row-selected", self.choose)
        self.title_field = Gtk.Entry(placeholder_text="Title")
        self.title_field.get_accessible().set_name("Title")
        self.text = Gtk.TextView()
        self.text.get_accessible().set_name("Text")
        self.pinned = Gtk.CheckButton(label="Pinned")
        self.status = Gtk.Label(label="", xalign=0)
        self.lay_out()
        self.fill()
        self.tell()

    def lay_out(self):
        buttons = Gtk.Box(spacing=6)
        for label, pressed in (("Add", self.add_note), ("Save", self.save_note), ("Delete", self.delete_note)):
            button = Gtk.Button(label=label)
            button.connect("clicked", lambda _, do=pressed: do())
            buttons.add(button)
        left = Gtk.Box(orientation=Gtk.Orientation.VERTICAL, spacing=6)
        left.pack_start(self.search, False, False, 0)
        left.pack_start(self.rows, True, True, 0)
        right = Gtk.Box(orientation=Gtk.Orientation.VERTICAL, spacing=6)
        frame = Gtk.Frame()
        frame.add(self.text)
        for child, grows in ((self.title_field, False), (frame, True), (self.pinned, False), (buttons, False)):
            right.pack_start(child, grows, grows, 0)
        both = Gtk.Box(spacing=12, border_width=12)
        both.pack_start(left, True, True, 0)
        both.pack_start(right, True, True, 0)
        whole = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
        whole.pack_start(both, True, True, 0)
        whole.pack_start(self.status, False, False, 6)
        self.add(whole)

    def load(self):
        try:
            with open(FILE, encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return []

    def keep(self):
        with open(FILE, "w", encoding="utf-8") as file:
            json.dump(self.notes, file)

    def fill(self):
        for row in self.rows.get_children():
            self.rows.remove(row)
        wanted = self.search.get_text().lower()
        found = [note for note in self.notes if wanted in (note["title"] + note["text"]).lower()]
        for note in sorted(found, key=lambda note: not note["pinned"]):
            row = Gtk.ListBoxRow()
            row.note = note
            row.add(Gtk.Label(label=note["title"], xalign=0))
            row.get_accessible().set_name(note["title"])
            self.rows.add(row)
        self.rows.show_all()

    def choose(self, _, row):
        if row is None:
            return
        self.shown = row.note
        self.title_field.set_text(self.shown["title"])
        self.text.get_buffer().set_text(self.shown["text"])
        self.pinned.set_active(self.shown["pinned"])

    def written(self):
        buffer = self.text.get_buffer()
        text = buffer.get_text(*buffer.get_bounds(), False)
        return {"title": self.title_field.get_text(), "text": text, "pinned": self.pinned.get_active()}

    def add_note(self):
        if not self.title_field.get_text():
            self.tell("A note needs a title")
            return
        self.notes.append(self.written())
        self.changed("Added")

    def save_note(self):
        if self.shown is None:
            self.tell("No note is chosen")
            return
        self.shown.update(self.written())
        self.changed("Saved")

    def delete_note(self):
        if self.shown is None:
            self.tell("No note is chosen")
            return
        ask = Gtk.MessageDialog(
            transient_for=self,
            modal=True,
            message_type=Gtk.MessageType.QUESTION,
            text=f"Delete “{self.shown['title']}”?",
        )
        ask.set_title("Delete a note")
        ask.add_buttons("Keep it", Gtk.ResponseType.CANCEL, "Delete it", Gtk.ResponseType.YES)
        answer = ask.run()
        ask.destroy()
        if answer == Gtk.ResponseType.YES:
            self.notes.remove(self.shown)
            self.changed("Deleted")

    def changed(self, what):
        self.keep()
        self.shown = None
        self.title_field.set_text("")
        self.text.get_buffer().set_text("")
        self.pinned.set_active(False)
        self.fill()
        self.tell(what)

    def tell(self, what=""):
        count = f"{len(self.notes)} note{'' if len(self.notes) == 1 else 's'}"
        self.status.set_text(f"{what}. {count}" if what else count)


if __name__ == "__main__":
    window = Notes()
    window.connect("destroy", Gtk.main_quit)
    window.show_all()
    Gtk.main()
