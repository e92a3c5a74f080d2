"""The program's notes to a model: what is written is read back as it was meant."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.notes import Note, NoteKind, read_notes, without_notes


@pytest.mark.parametrize("kind", get_args(NoteKind))
def test_every_kind_is_read_back(kind: NoteKind) -> None:
    detail = "a click on “Save”" if "save" in str(Note(kind, "save")) else ""
    note = Note(kind, detail)
    assert [found.kind for found in read_notes(f"Before. {note} After.")] == [kind]
    assert without_notes(f"Before. {note}") == "Before."


@given(st.text())
def test_a_persons_words_cannot_end_their_note(said: str) -> None:
    (note,) = read_notes(str(Note("said", said)))
    assert note.detail == said.replace("“", "‘").replace("”", "’")


def test_several_notes_in_one_text_are_read_in_order() -> None:
    notes = [Note("refused"), Note("said", "open mousepad"), Note("no_effect")]
    assert read_notes(" ".join(map(str, notes))) == notes


def test_a_full_stop_in_a_name_ends_no_note():
    note = Note("failed", "several are called 'a.txt': ~/a.txt, ~/b/a.txt")
    assert read_notes(f"{note} {Note('no_effect')}") == [note, Note("no_effect")]
