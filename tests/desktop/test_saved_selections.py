"""What a selection held is there again afterwards, in all the kinds that matter."""

import io
import subprocess
import time

import pytest
from stubs.display import PlainDisplay, wait_until

from agent.desktop.x11.connection import open_display
from agent.desktop.x11.selection_keeper_process import read_kinds
from agent.desktop.x11.selections import SelectionOwner, saved

pytestmark = pytest.mark.timeout(60)
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
