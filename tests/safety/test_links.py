"""Links that act: judged by the address that the accessibility tree tells, whatever they are called."""

from dataclasses import replace

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
        "https://wiki.example/w/index.php?title=Ada&action=history",
        "https://forum.example/index.php?action=profile;area=summary",
        "https://docs.example/authors/csrf-tokens",
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
        ("https://news.example/vote?id=4&how=up&auth=ab12", "does something"),
        ("https://forge.example/star?authenticity_token=Xy1", "does something"),
        ("https://calendar.example/r?action=RESPOND&eid=7", "does something"),
        ("https://desk.example/Ticket.html?Action=Take&id=44", "does something"),
        ("https://lists.example/unsubscribe/confirm?u=7", "does something"),
        ("https://site.example/files/photo.jpg.exe", "a program"),
        ("file:///home/me/Downloads/setup.sh", "a program"),
    ],
)
def test_a_link_that_acts_is_asked_about_whatever_it_is_called(address: str, reason: str) -> None:
    assert reason in why(address)
    assert why(address, button="right") == "", "its menu only opens"


@pytest.mark.parametrize("end", ["orders/51/baja", "bookings/8f2/annuler", "doors/7/unlock", "zamowienia/51/odwolaj"])
def test_a_link_behind_a_thing_and_its_number_may_do_something_in_any_language(end: str) -> None:
    assert "may do something" in why(f"https://site.example/{end}")
    assert why(f"https://7.site.example/{end.rpartition('/')[2]}") == "", "the number of a host is no thing"


@pytest.mark.parametrize(
    "end", ["orders/51", "orders/51/details", "runs/51/artifacts", "commandes/51/suivi", "news/51/baja"]
)
def test_a_page_about_a_thing_is_only_read(end: str) -> None:
    assert why(f"https://site.example/{end}") == ""


def test_a_link_in_a_mail_that_a_page_shows_is_asked_about_if_it_leads_elsewhere() -> None:
    mail = Place("Firefox", "Inbox - Gmail - Mozilla Firefox", window=1, site="mail.google.com")

    def asked(address: str, place: Place) -> bool:
        link = Element(1, "link", "here", Region(90, 90, 60, 20), address)
        seen = Situation(under=place, words="here", elements=(link,))
        click = Click(DesktopPoint(100, 100))
        return SHIPPED.question(click, InputHistory().judge(click, seen, 1)) is not None

    assert asked("https://news.example.co.uk/letter", mail)
    assert not asked("https://mail.google.com/mail/u/0/#inbox", mail)
    assert not asked("https://docs.google.com/document/1", mail)
    assert not asked("https://news.example.co.uk/letter", replace(mail, title="News - Mozilla Firefox"))


def test_what_only_opens_choices_is_pressed_without_a_question() -> None:
    place = Place("Firefox", "core - Mozilla Firefox", window=1)
    for states, is_asked in (
        (frozenset({"has popup"}), False),
        (frozenset({"expandable"}), False),
        (frozenset(), True),
    ):
        for name, weighs in (("release-2.0", False), ("Delete account", True)):
            button = Element(1, "push button", name, Region(90, 90, 60, 20), states=states)
            seen = Situation(under=place, words=name, elements=(button,))
            click = Click(DesktopPoint(100, 100))
            question = SHIPPED.question(click, InputHistory().judge(click, seen, 1))
            assert (question is not None) is (is_asked or weighs), (states, name)


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
