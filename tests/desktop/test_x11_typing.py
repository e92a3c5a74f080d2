"""How text is entered on X11, and the clipboard as it was before."""

import io
import subprocess
import time

import pytest
from stubs.display import PlainDisplay, wait_until

from agent.desktop.x11.connection import open_display
from agent.desktop.x11.selection_keeper_process import read_kinds
from agent.desktop.x11.selections import SelectionOwner, saved
from agent.desktop.x11.text import Way, pieces, way_of

pytestmark = pytest.mark.timeout(60)


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


FILES = "x-special/gnome-copied-files"


@pytest.fixture
def display(monkeypatch):
    with PlainDisplay() as plain:
        for name in ("DISPLAY", "XAUTHORITY"):
            monkeypatch.setenv(name, plain.environ[name])
        connection = open_display()
        yield connection
        connection.close()


def xclip(*arguments, data=None):
    done = subprocess.run(
        ["xclip", "-selection", "clipboard", *arguments],
        input=data,
        stdout=subprocess.PIPE if data is None else subprocess.DEVNULL,
        timeout=10,
        check=False,
    )
    return done.stdout


def held(target):
    return xclip("-o", "-t", target)


def own(display, kinds):
    """Own the clipboard in several kinds, as an application does."""
    from agent.desktop.x11.selections import _own, _wait_for_owner

    _own("CLIPBOARD", kinds)
    _wait_for_owner(display, "CLIPBOARD")


@pytest.mark.parametrize(
    "kinds",
    [
        {"UTF8_STRING": "größer".encode()},
        {"UTF8_STRING": b"bold", "text/html": b"<b>bold</b>"},
        {"UTF8_STRING": b"/home/me/a", "text/uri-list": b"file:///home/me/a\r\n", FILES: b"cut\nfile:///home/me/a"},
        {"image/png": bytes(range(256)) * 4000, "text/html": b"<img>"},  # a megabyte
    ],
)
def test_every_kind_is_there_again_after_something_else_was_pasted(display, kinds):
    own(display, kinds)
    with saved(display, ["CLIPBOARD"]):
        owner = SelectionOwner("ours", ["CLIPBOARD"])
        owner.close()
    assert {name: held(name) for name in kinds} == kinds
    assert {*held("TARGETS").decode().split()} - {"TARGETS"} == {*kinds}


def test_what_somebody_copies_afterwards_stays(display):
    own(display, {"UTF8_STRING": b"old", "text/html": b"old"})
    with saved(display, ["CLIPBOARD"]):
        SelectionOwner("ours", ["CLIPBOARD"]).close()
    xclip("-i", data=b"new")
    wait_until(lambda: xclip("-o") == b"new", "xclip owns it; its first process ends before that")
    time.sleep(0.3)
    assert xclip("-o") == b"new"


def test_nothing_is_put_back_where_nothing_was(display):
    with saved(display, ["CLIPBOARD"]):
        SelectionOwner("ours", ["CLIPBOARD"]).close()
    assert isinstance(display.get_selection_owner(display.intern_atom("CLIPBOARD")), int)


def test_the_keeper_reads_what_it_is_told():
    told = io.BytesIO(b"UTF8_STRING 3\na\nbtext/html 0\n")
    assert read_kinds(told) == {"UTF8_STRING": b"a\nb", "text/html": b""}
