"""Deeds of several actions on a real desktop: none of them is done unasked, and a person who says no prevents it."""

import socket
import time
from contextlib import suppress
from pathlib import Path

import pytest
from stubs.endpoint import act
from stubs.lair import Lair

from agent.desktop.x11.desktop import X11Desktop
from agent.desktop.x11.windows import X11Windows
from agent.events.run_events import Acted

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(120)]


@pytest.fixture
def lair(sandbox):
    return Lair(sandbox)


def test_an_existing_file_is_not_emptied_unasked(lair):
    diary = f"{lair.home}/diary.txt"
    Path(diary).write_text("what a person wrote\n", encoding="utf-8")
    lair.shows(["mousepad", diary], "Mousepad")
    empties = [act("key", keys="ctrl+a"), act("key", keys="backspace"), act("key", keys="ctrl+s")]
    questions, _ = lair.run(empties, allowed=False)
    assert len(questions) == 1
    assert "everything in this window was selected" in questions[0]
    assert Path(diary).read_text(encoding="utf-8") == "what a person wrote\n"


def test_a_window_is_not_closed_unasked_by_the_letters_of_its_menus(lair):
    lair.shows(["mousepad"], "Mousepad")
    for opens, letter in (("alt+space", "c"), ("alt+f", "q")):
        keys = [act("key", keys=opens), act("key", keys=letter), act("key", keys="escape")]
        questions, _ = lair.run(keys, allowed=False)
        assert ["a menu was opened by keys" in question for question in questions] == [True]
    windows = X11Windows()
    assert any(window.app == "Mousepad" for window in windows.windows())
    windows.close()


def test_a_desktop_entry_is_neither_written_nor_named_nor_started_unasked(lair, tmp_path):
    trap = tmp_path / "owned"
    desktop = f"{lair.home}/Desktop"
    entry = f"[Desktop Entry]\nType=Application\nName=Holiday\nExec=touch {trap}\n"
    steps = [
        act("open", text="text editor"),
        act("type", text=entry),
        act("key", keys="ctrl+s"),
        act("wait", time=2),
        act("type", text=f"{desktop}/holiday.desktop"),
        act("wait", time=1),
        act("key", keys="enter"),
        act("wait", time=2),
    ]
    questions, _ = lair.run(steps, allowed=True)
    assert any("texts that start something" in question for question in questions)
    assert any("names that start something" in question for question in questions)
    assert Path(desktop, "holiday.desktop").is_file()
    time.sleep(2)
    places = [[74 / 1.92, y / 1.08] for y in (418, 454)]  # of a thousand: the icon below those that are always there
    questions, _ = lair.run([act("double_click", coordinate=place) for place in places], allowed=False)
    assert ["there are programs in this folder" in question for question in questions] == [True, True]
    time.sleep(1)
    assert not trap.exists()


def test_the_desktops_own_warning_is_not_agreed_to_unasked(lair):
    text = "The desktop file is in an insecure location and not marked as executable."
    lair.shows(
        ["zenity", "--question", "--title=Attention", f"--text={text}", "--ok-label=Launch Anyway", "--no-wrap"],
        "Zenity",
    )
    questions, _ = lair.run([act("key", keys="enter"), act("key", keys="space")], allowed=False)
    assert len(questions) >= 1
    assert all("may run or install a program" in question or "a dialog" in question for question in questions)


def test_an_ordinary_button_is_judged_by_the_question_of_its_dialog(lair):
    for text, asks in (("All data on the disk will be erased.", True), ("Choose a name for the album.", False)):
        lair.shows(["zenity", "--question", f"--text={text}", "--ok-label=Create", "--no-wrap"], "Zenity")
        questions, _ = lair.run([act("key", keys="enter")], allowed=False)
        assert any("a question about something" in question for question in questions) is asks, questions
        lair.run([act("key", keys="escape")], allowed=True)


class Untold(X11Desktop):
    """A desktop whose applications tell no elements."""

    def open_elements(self):
        return None


@pytest.mark.parametrize("desktop", [X11Desktop, Untold])
def test_a_button_that_nobody_listed_asks_by_pointer_also_where_no_element_is_told(lair, desktop):
    labels = ["--ok-label=Defragment", "--cancel-label=Cancel"]
    shows = ["zenity", "--question", "--title=Disk tools", "--text=What now?", *labels]
    lair.shows(shows, "Zenity")
    windows = X11Windows()
    at, screen = windows.region(windows.active().id), windows._root.get_geometry()
    windows.close()
    y = round((at.top + at.height - 22) * 999 / screen.height)
    [defragment, cancel] = [
        act("click", coordinate=[round((at.left + at.width * share) * 999 / screen.width), y]) for share in (0.75, 0.25)
    ]
    questions, _ = lair.run([defragment], allowed=False, open_desktop=desktop)
    assert ["“Defragment” is not on the list of harmless buttons" in question for question in questions] == [True]
    assert lair.run([cancel], allowed=False, open_desktop=desktop)[0] == []
    lair.shows(shows, "Zenity")
    said = {"sentence": "defragment the disk", "open_desktop": desktop}
    assert lair.run([defragment], allowed=False, **said)[0] == []
    lair.shows(shows, "Zenity")
    said["sentence"] = "defragment my mailbox"  # which this dialog is not about
    assert len(lair.run([defragment], allowed=False, **said)[0]) == 1


class CutOff(X11Desktop):
    """A desktop whose reader of windows can be cut off, and gets no other connection then."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.cut = False
        self.opened = []

    def open_windows(self):
        if self.cut:
            return None
        self.opened.append(super().open_windows())
        return self.opened[-1]

    def cut_off(self):
        """Cut the connections as a server does that ends them."""
        self.cut = True
        for windows in self.opened:
            with suppress(OSError):  # some are closed already
                windows._display.display.socket.shutdown(socket.SHUT_RDWR)


def test_a_reader_of_windows_that_is_cut_off_says_so_at_once_and_asks_from_then_on(lair):
    desktops = []

    def open_desktop(*arguments):
        desktops.append(CutOff(*arguments))
        return desktops[0]

    def said(event):
        if isinstance(event, Acted) and not desktops[0].cut:
            desktops[0].cut_off()

    lair.shows(["mousepad"], "Mousepad")
    steps = [act("type", text="before"), act("type", text="after"), act("key", keys="left")]
    questions, warned = lair.run(steps, allowed=True, open_desktop=open_desktop, said=said)
    assert len(questions) == 2
    assert all("not known now which window" in question for question in questions)
    assert len([one for one in warned if "window that gets an action" in one]) == 1
