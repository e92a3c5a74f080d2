"""Which way text takes into which application."""

import pytest

from agent.desktop.x11.text import Way, pieces, way_of


def way(app="Mousepad", libraries=("libgtk-3.so",), *, composes=False, tk=False, selected=False):
    return way_of(app, libraries, composes=composes, tk=tk, selected=selected)


@pytest.mark.parametrize("library", ["libgtk-3.so", "libgtk-4.so", "libQt5Gui.so", "libQt6Gui.so", "libjvm.so"])
def test_what_is_known_to_paste_clipboard_keeps_its_own_selection_even_before_it_has_one(library):
    assert way(libraries=["libc.so", library]).selections == ("CLIPBOARD",)


def test_a_terminal_pastes_primary_whatever_it_is_made_with():
    assert way("Xfce4-terminal", selected=True).selections[0] == "PRIMARY"
    assert way("konsole", ["libQt5Gui.so"]).selections[0] == "PRIMARY"


def test_what_is_not_known_is_offered_both_unless_it_has_something_selected():
    assert way("Xedit", ()).selections == ("CLIPBOARD", "PRIMARY")
    assert way("Xedit", (), selected=True).selections == ("CLIPBOARD",)


def test_in_tk_keys_replace_what_is_selected():
    assert way("Tk", (), tk=True) == Way(keys=True, selections=("CLIPBOARD",), types_over=True)


@pytest.mark.parametrize("app", ["Chromium", "firefox-esr", "Google-chrome", "libreoffice-writer", "jetbrains-idea"])
def test_where_what_is_typed_is_completed_or_corrected_short_text_is_pasted_too(app):
    assert not way(app).keys


def test_where_keys_are_composed_to_other_characters_text_is_pasted():
    assert way().keys
    assert not way(composes=True).keys


def test_long_text_is_cut_between_characters():
    text = "aé日🙂" * 100
    cut = pieces(text, 10)
    assert "".join(cut) == text
    assert max(len(piece.encode()) for piece in cut) <= 10
