"""Compositors that tell windows by their names alone: what is known there, and that the policy asks for the rest."""

from collections.abc import Callable, Iterator

import pytest
from stubs.display import wait_until
from stubs.sway import PlainSway

from agent.core.actions import Click, PressKeys, TypeText
from agent.core.geometry import DesktopPoint
from agent.desktop.factory import open_desktop
from agent.desktop.guard.desktop import GuardedDesktop
from agent.desktop.protocol.desktop import Abilities
from agent.desktop.protocol.windows import Windows
from agent.desktop.wlroots.desktop import WlrootsDesktop
from agent.safety.policy import Policy, Question
from agent.safety.situation import Place, Situation
from agent.safety.stop import StopSwitch
from foundation.errors import EnvironmentLacksError

POINT = DesktopPoint(300, 300)
PROBE = "tests/stubs/probe_window.py"


@pytest.fixture(scope="module")
def sway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainSway]:
    with PlainSway() as found:
        for title in ("first", "second"):
            found.start("/usr/bin/python3", PROBE, str(tmp_path_factory.mktemp("probe") / "log"), title)
            wait_until(lambda title=title: f'"{title}"' in str(found.tree()).replace("'", '"'), f"{title} is there", 15)
        found.do("fullscreen disable")  # which lets no other window have the keyboard
        yield found


@pytest.fixture
def desktop(sway: PlainSway, monkeypatch: pytest.MonkeyPatch) -> Iterator[WlrootsDesktop]:
    """As on a compositor that is not sway."""
    for name, value in (sway.variables | {"SWAYSOCK": ""}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("DISPLAY", raising=False)
    found = open_desktop(StopSwitch())
    assert isinstance(found, WlrootsDesktop)
    yield found
    found.screen.close()
    found.close()


@pytest.fixture
def windows(desktop: WlrootsDesktop) -> Iterator[Windows]:
    found = desktop.open_windows()
    assert found is not None
    yield found
    found.close()


@pytest.mark.e2e
def test_the_names_of_windows_and_the_one_with_the_keyboard_are_known(windows: Windows) -> None:
    known = {one.title: one.id for one in windows.windows()}
    assert sorted(known) == ["first", "second"]
    active = windows.active()
    assert active is not None and active.title == "second"
    assert windows.activate(known["first"])
    wait_until(lambda: (now := windows.active()) is not None and now.title == "first", "the first one has the keyboard")
    assert windows.stacking()[-1] == known["first"]
    assert windows.activate(known["second"])
    assert not windows.activate("another")


@pytest.mark.e2e
def test_where_windows_are_is_not_claimed_and_none_is_taken_for_hidden(windows: Windows) -> None:
    one = windows.windows()[0]
    assert (windows.at(300, 300), windows.region(one.id), windows.layers()) == (None, None, [])
    with pytest.raises(EnvironmentLacksError, match="none can be hidden"):
        windows.visible(frozenset({one.id}))


@pytest.mark.e2e
def test_the_policy_goes_by_the_window_with_the_keyboard_and_asks_before_clicks(desktop: WlrootsDesktop) -> None:
    assert (desktop.abilities.windows, desktop.abilities.names) == (False, True)
    protected = GuardedDesktop(desktop, dry_run=True, ours=False)
    policy = Policy.load("risky")
    typed = protected.surroundings.of(TypeText("hello"))
    assert typed.focused is not None and typed.focused.title == "second"
    assert policy.question(TypeText("hello"), typed) is None
    clicked = policy.question(Click(POINT), protected.surroundings.of(Click(POINT)))
    assert clicked is not None and "not known on this desktop which window is there" in clicked.reason
    assert clicked.scope == ""  # allowed for good, it would be allowed anywhere
    protected.close()


def question(
    action: TypeText | PressKeys | Click[DesktopPoint], abilities: Abilities, **told: Place
) -> Question | None:
    return Policy.load("risky").question(action, Situation(words="Dark", untold=abilities.untold, **told))


@pytest.mark.slow
def test_what_a_desktop_never_tells_is_asked_about_and_what_it_tells_is_not() -> None:
    full, names, none = Abilities(), Abilities(windows=False, names=True), Abilities(windows=False)
    editor = Place("Mousepad", "notes")
    asks: Callable[..., bool] = lambda *given, **told: question(*given, **told) is not None  # noqa: E731
    assert not asks(Click(POINT), full, under=editor)
    assert asks(Click(POINT), names)
    assert asks(Click(POINT), none)
    assert not asks(TypeText("hello"), full, focused=editor)
    assert not asks(TypeText("hello"), names, focused=editor)
    assert asks(TypeText("hello"), none)
    assert asks(TypeText("ls"), names, focused=Place("foot", "~"))
    assert not asks(PressKeys(("ctrl", "c")), names, focused=editor)
    assert asks(PressKeys(("ctrl", "c")), none)


def test_what_lacks_is_named() -> None:
    names, none = Abilities(windows=False, names=True), Abilities(windows=False)
    assert [one for one in Abilities().lacks() if "window" in one] == []
    assert len([one for one in names.lacks() if "window" in one]) == 1
    assert any("which window has the keyboard" in one for one in none.lacks())
