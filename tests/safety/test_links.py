"""Links that act: judged by the address that the accessibility tree tells, whatever they are called."""

import pytest

from agent.core.actions import Click, PressKeys
from agent.core.geometry import DesktopPoint, Region
from agent.safety.input_history import InputHistory
from agent.safety.policy import Policy
from agent.safety.situation import Place, Situation
from agent.screen.outline import Element

SHIPPED = Policy.load("risky")
PAGE = Place("Firefox", "A page - Mozilla Firefox", window=1)


def why(address: str | None, name: str = "Details", button: str = "left") -> str:
    """Why a click on a link, and Enter on it, are asked about; "" if they are not."""
    link = Element(1, "link", name, Region(90, 90, 60, 20), address)
    click = Click(DesktopPoint(100, 100), button)  # type: ignore[arg-type]
    told = []
    for action, seen in (
        (click, Situation(under=PAGE, words=name, elements=(link,))),
        (PressKeys(("enter",)), Situation(focused=PAGE, elements=(link,))),
    ):
        question = SHIPPED.question(action, InputHistory().judge(action, seen, 1))
        told.append(question.reason if question is not None else "")
    assert button != "left" or bool(told[0]) == bool(told[1])
    return told[0]


@pytest.mark.parametrize(
    "address",
    [
        None,
        "https://shop.example/list?sort=price&order=asc&format=table&page=2",
        "https://search.example/?q=delete+account",
        "https://wiki.example/w/index.php?title=Ada&action=edit&section=2#History",
        "https://news.example/2026/11/who-removes-the-posters.html",
        "https://git.example/shop/tree/delete-account",
        "https://docs.example/3.11/install",
        "https://bun.sh/docs",
        "https://wash.example/manual.pdf",
        "file:///usr/share/doc/index.html#top",
        "#content",
    ],
)
def test_what_a_link_only_shows_is_not_asked_about(address: str | None) -> None:
    assert why(address) == ""


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("javascript:removeAll()", "no page of the web"),
        ("mailto:all@corp.example?body=Bye", "no page of the web"),
        ("data:text/html,<script>", "no page of the web"),
        ("zoommtg://join", "no page of the web"),
        ("https://site.example/x?action=delete", "does something"),
        ("https://site.example/x?Delete=77", "does something"),
        ("https://site.example/x?_method=destroy&id=4", "does something"),
        ("https://site.example/notes/12/destroy", "does something"),
        ("https://site.example/logout?next=/", "does something"),
        ("https://site.example/files/photo.jpg.exe", "a program"),
        ("file:///home/me/Downloads/setup.sh", "a program"),
    ],
)
def test_a_link_that_acts_is_asked_about_whatever_it_is_called(address: str, reason: str) -> None:
    assert reason in why(address)
    assert why(address, button="right") == "", "its menu only opens"


def test_a_link_that_only_a_script_makes_act_is_a_button() -> None:
    for address in ("https://site.example/page#", "javascript:void(0);", "javascript:;"):
        assert why(address, "More") == ""
        assert "“Frobnicate” is not on the list" in why(address, "Frobnicate")
    assert why("https://site.example/page", "Frobnicate") == ""


def test_a_link_that_is_called_by_another_address_than_it_leads_to_is_asked_about() -> None:
    for address in ("https://bank.example.evil.example/", "http://evil.example/?https://bank.example"):
        assert "another site" in why(address, "https://www.bank.example/login")
    for address in ("https://bank.example/login", "https://www.bank.example/", "https://my.bank.example/"):
        assert why(address, "www.bank.example/start") == ""
    assert why("https://nodejs.org/", "Node.js") == "", "this is a name, and no address"
