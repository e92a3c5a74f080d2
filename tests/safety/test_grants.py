"""What a person can allow for the rest of a run: the same reasons, in the same window or on the same site."""

import pytest

from agent.core.actions import Action, Click, Drag, LongPress, OpenApp, PressKeys, TypeText, VisitPage
from agent.core.geometry import DesktopPoint, Region
from agent.safety.policy import Grants, Policy, Question
from agent.safety.situation import UNKNOWN, Place, Situation
from agent.screen.outline import Element

SHIPPED = Policy.load("risky")
POINT = DesktopPoint(100, 100)
SHOP = Place("Firefox", "Cart", window=1, site="shop.example")


def at(words: str, place: Place) -> Situation:
    return Situation(under=place, words=words)


def into(app: str, window: int = 1) -> Situation:
    return Situation(focused=Place(app, "a title", window=window))


def question(action: Action[DesktopPoint], situation: Situation = UNKNOWN) -> Question:
    found = SHIPPED.question(action, situation)
    assert found is not None, action
    return found


@pytest.mark.parametrize(
    ("action", "situation", "allows"),
    [
        (TypeText("ls"), into("Xfce4-terminal"), "actions asked for the same reason in this window of Xfce4-terminal"),
        (
            TypeText("rm -r x"),
            into("Xfce4-terminal"),
            "actions asked for the same reasons in this window of Xfce4-terminal",
        ),
        (PressKeys(("ctrl", "w")), into(""), "actions asked for the same reason in this window of “a title”"),
        (
            Click(POINT),
            at("Delete", Place("Thunar", "", dialog=True, window=3)),
            "actions asked for the same reason in this dialog of Thunar",
        ),
        (Click(POINT), at("Delete", SHOP), "actions asked for the same reason on “shop.example” in Firefox"),
        (
            Drag(None, POINT),
            Situation(under=Place("Xfdesktop", "", window=1), origin=Place("Thunar", "", window=2), words="Trash"),
            "actions asked for the same reasons in this window of Thunar and in this window of Xfdesktop",
        ),
        (
            LongPress(POINT),
            at("Send", Place("Evil\x07", "", window=1)),
            "actions asked for the same reason in this window of Evil\\x07",
        ),
        (OpenApp("console"), Situation(opens=("Terminal", "xterm", "xterm")), "opening Terminal (xterm)"),
        (OpenApp("console"), UNKNOWN, "opening console"),
        (VisitPage("https://other.org/a"), UNKNOWN, "visiting pages of “other.org”"),
    ],
)
def test_the_scope_says_what_would_be_allowed(action: Action[DesktopPoint], situation: Situation, allows: str) -> None:
    assert question(action, situation).scope == f"{allows}, for the rest of the run"


@pytest.mark.parametrize(
    ("action", "situation"),
    [
        (Click(POINT), at("Delete", Place("Firefox", "A page", window=1))),  # of any site
        (Click(POINT), at("Delete", Place("Thunar", ""))),  # in any window
        (Click(POINT), Situation(words="Delete")),
        (Click(POINT), at("Pay now", SHOP)),
        (PressKeys(("enter",)), into("Pinentry")),
    ],
    ids=["unknown site", "unknown window", "unknown place", "a payment", "a password prompt"],
)
def test_what_has_no_place_or_weighs_too_much_can_only_be_allowed_once(
    action: Action[DesktopPoint], situation: Situation
) -> None:
    grants, asked = Grants(), question(action, situation)
    assert asked.scope == ""
    grants.add(asked)
    assert not grants.allow(asked)


def test_a_yes_for_the_rest_of_the_run_covers_the_same_reason_at_the_same_place_and_nothing_else() -> None:
    grants = Grants()
    grants.add(question(Click(POINT), at("Delete", SHOP)))
    later = Place("Firefox", "BenchmarkOptions", window=2, site="shop.example")
    assert grants.allow(question(Click(POINT, "right"), at("Remove this item", later)))
    for place in (
        Place("Firefox", "Cart", window=1, site="shop.example.evil.example"),
        Place("Firefox", "Cart", window=1),
        Place("Chromium", "Cart", window=3, site="shop.example"),
        Place("Thunar", "Cart", window=1),
    ):
        assert not grants.allow(question(Click(POINT), at("Delete", place))), place
    assert not grants.allow(question(Click(POINT), at("Delete and send", SHOP)))
    assert not grants.allow(question(Click(POINT), at("Allow", SHOP)))
    assert not grants.allow(question(Drag(POINT, POINT), Situation(under=SHOP, origin=later, words="Delete")))


def test_a_button_that_nobody_knows_is_allowed_by_its_name() -> None:
    grants = Grants()

    def pressed(name: str) -> Question:
        button = Element(1, "push button", name, Region(90, 90, 20, 20))
        place = Place("Zzplan", "", window=1)
        facts = frozenset({"a button"})
        return question(Click(POINT), Situation(under=place, elements=(button,), facts=facts))  # type: ignore[arg-type]

    grants.add(pressed("Zorb"))
    assert grants.allow(pressed("Zorb"))
    assert not grants.allow(pressed("Frobnicate"))


def test_reasons_may_be_allowed_one_after_the_other() -> None:
    grants = Grants()
    plain, worse = question(TypeText("ls"), into("XTerm")), question(TypeText("sudo ls"), into("XTerm"))
    grants.add(plain)
    assert grants.allow(question(TypeText("pwd"), into("XTerm")))
    assert not grants.allow(worse)
    assert not grants.allow(question(TypeText("pwd"), into("XTerm", window=2)))
    grants.add(worse)
    assert grants.allow(worse)
    secret = question(TypeText("password: x"), into("XTerm"))
    grants.add(secret)
    assert not grants.allow(secret)
