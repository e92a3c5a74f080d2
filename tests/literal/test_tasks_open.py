"""Opening files and folders: which action it comes to, and when it is called done."""

import pytest

from agent.core.geometry import Region
from agent.core.notes import Note
from agent.screen.outline import ShownWindow
from tests.literal.made_up import call_of, element, ending, follow, screen


def window(title, app="Thunar"):
    return ShownWindow(title, app, Region(0, 0, 900, 700), active=True)


@pytest.mark.parametrize(
    ("instruction", "call"),
    [
        ("open the Documents folder", {"action": "open", "text": "./Documents/"}),
        ("open the file report.txt", {"action": "open", "text": "./report.txt"}),
        (
            "open ~/notes/a.md with the text editor",
            {"action": "open", "text": "~/notes/a.md", "application": "text editor"},
        ),
    ],
)
def test_a_file_or_folder_is_opened_as_such(instruction, call):
    (reply,) = follow(instruction, screen())
    assert call_of(reply) == call


def test_the_window_that_names_it_is_the_evidence():
    last = follow("open the Documents folder", screen(), screen(windows=(window("Documents - Thunar"),)))[-1]
    assert ending(last) == ("success", True)
    assert "Documents - Thunar" in last.arguments["evidence"][0]


def test_a_window_that_names_something_else_is_no_evidence():
    other = screen(element("label", "Something"), windows=(window("My Documents2 - Thunar"),))
    replies = follow("open the Documents folder", screen(), *[other] * 5)
    assert [reply.arguments["action"] for reply in replies] == ["open", *["wait"] * 4, "terminate"]
    assert ending(replies[-1]) == ("success", False)


def test_why_it_was_not_opened_is_told_whole():
    why = Note("failed", "/etc/dup.txt is not in your home: open it yourself")
    last = follow("open the file dup.txt", screen(), screen(), notes=[why])[-1]
    assert ending(last)[0] == "fail"
    assert why.detail in last.arguments["text"]
