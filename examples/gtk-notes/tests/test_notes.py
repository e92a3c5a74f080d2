"""What a person can do with the notebook, in a throw-away desktop, without a model."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mai_agent import Desktop

PROGRAM = Path(os.environ.get("NOTES_PROGRAM", Path(__file__).parents[1] / "notes.py"))


@pytest.fixture
def start(desk: Desktop) -> Iterator[Callable[[], None]]:
    """Starts the notebook. One desktop serves all tests (pytest.ini), so it is ended and emptied after each."""
    home = Path(desk.sandbox.environ["HOME"])
    (home / "notes.py").write_bytes(PROGRAM.read_bytes())
    programs = []

    def begin() -> None:
        programs.append(desk.sandbox.start("/usr/bin/python3", str(home / "notes.py")))
        desk.expect("Add", role="button", within=20)

    yield begin
    for program in programs:
        program.signal(signal.SIGKILL)
    (home / "notes.json").unlink(missing_ok=True)
    desk.expect_gone("Search", within=20)


@pytest.fixture
def notes(desk: Desktop, start: Callable[[], None]) -> Desktop:
    """The notebook, empty."""
    start()
    return desk


@pytest.fixture
def kept(desk: Desktop) -> Callable[[], list[dict[str, object]]]:
    """Reads the notebook's file."""
    return lambda: json.loads((Path(desk.sandbox.environ["HOME"]) / "notes.json").read_text())


def add(notes: Desktop, title: str, text: str = "") -> None:
    notes.type(title, into="Title")
    if text:
        notes.type(text, into="Text")
    notes.click("Add", role="button")
    notes.expect("Added", within=3)


def test_it_starts_empty(notes):
    notes.expect("0 notes")


def test_a_note_is_added_and_kept(notes, kept):
    add(notes, "Milk", "two bottles")
    notes.expect("1 note")
    assert kept() == [{"title": "Milk", "text": "two bottles", "pinned": False}]


def test_a_note_without_a_title_is_not_added(notes):
    notes.click("Add", role="button")
    notes.expect("A note needs a title")
    notes.expect("0 notes")


def test_a_sentence_does_it_too(notes, kept):
    notes.do("type 'Bread' into Title and click Add").check()
    assert [note["title"] for note in kept()] == ["Bread"]


def test_a_chosen_note_is_shown(notes):
    add(notes, "Milk", "two bottles")
    notes.click("Milk", role="list item")
    notes.expect("two bottles")


def test_a_note_is_changed(notes, kept):
    add(notes, "Milk")
    notes.click("Milk", role="list item")
    notes.type("Oat milk", into="Title", replace=True)
    notes.click("Save", role="button")
    notes.expect("Saved. 1 note")
    assert [note["title"] for note in kept()] == ["Oat milk"]


def test_a_pinned_note_stands_first(notes):
    add(notes, "Bread")
    notes.type("Milk", into="Title")
    notes.set("Pinned", True)
    notes.click("Add", role="button")
    notes.expect("2 notes")
    milk, bread = (notes.expect(name, role="list item") for name in ("Milk", "Bread"))
    assert milk.box.top < bread.box.top


def test_a_search_shows_what_holds_the_words(notes):
    add(notes, "Milk", "two bottles")
    add(notes, "Bread", "one loaf")
    notes.type("loaf", into="Search")
    notes.expect_gone("Milk", role="list item")
    notes.expect("Bread", role="list item")


def test_deleting_asks_first(notes, kept):
    add(notes, "Milk")
    notes.click("Milk", role="list item")
    notes.click("Delete", role="button")
    notes.click("Keep it", role="button")
    assert len(kept()) == 1
    notes.click("Delete", role="button")
    notes.click("Delete it", role="button")
    notes.expect("Deleted. 0 notes")
    assert kept() == []


def test_notes_are_there_after_a_restart(notes, start):
    add(notes, "Milk")
    notes.close_window("Notes")
    notes.expect_gone("Add", role="button")
    start()
    notes.expect("Milk", role="list item")
