"""The tables of where things live: complete, unambiguous, and read as people name things."""

from collections import Counter
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from agent.literal.do.known_places import known_place
from agent.literal.goals import Target
from agent.literal.vocabulary.lexicon import plain
from agent.literal.vocabulary.places import Setting, desktop_named, find_places, known_thing
from agent.literal.vocabulary.translations import Names
from foundation.configs import config_names, load_config

_DESKTOPS = [name for name in config_names("places") if name != "things"]


def test_no_name_means_two_things():
    names = Counter(
        plain(name)
        for entry in load_config("places/things.toml").values()
        for name in (*entry["names"], *entry.get("opposites", ()))
    )
    assert [name for name, times in names.items() if times > 1] == []


@pytest.mark.parametrize("desktop", _DESKTOPS)
def test_every_place_can_be_read_and_has_a_name(desktop):
    things = load_config("places/things.toml")
    for thing in load_config(f"places/{desktop}.toml")["things"]:
        name = things[thing]["names"][0]
        for on in (True, False):
            place = find_places(name, desktop, on=on)[0]
            assert place.thing == thing
            assert place.app


@pytest.mark.parametrize("desktop", _DESKTOPS)
def test_places_use_only_known_words(desktop):
    known = {
        "page",
        "path",
        "control",
        "role",
        "under",
        "on",
        "off",
        "keys",
        "setting",
        "settings",
        "inverted",
        "above",
        "unset",
        "unit",
    }
    table = load_config(f"places/{desktop}.toml")
    for thing, entry in table["things"].items():
        assert set(entry) <= known, thing
        assert ("on" in entry) == ("off" in entry), thing


@pytest.mark.parametrize(("inside", "app"), [("text editor", "Mousepad"), ("Mousepad", "Mousepad"), ("terminal", None)])
def test_an_application_is_named_by_its_kind_too(inside, app):
    now = SimpleNamespace(names=Names("xfce"), earlier=(), scene=Mock(front=None, named_window=lambda *_: None))
    place = known_place(now, Target("line numbers", inside=inside))
    assert (place and place.app) == app


def test_the_light_theme_is_the_dark_one_switched_off():
    dark = find_places("dark theme", "xfce", on=False)[0]
    assert find_places("the light theme", "xfce", on=True)[0] == dark
    assert dark.choices[0] == "Adwaita"


def test_articles_and_words_around_a_name_do_not_matter():
    assert known_thing("the Bluetooth setting") == ("bluetooth", True)
    assert known_thing("my wallpaper") == ("wallpaper", True)
    assert known_thing("the sandwich") is None


def test_a_setting_tells_what_its_value_means():
    quiet = find_places("do not disturb", "gnome")[0]
    [banners] = quiet.settings
    assert banners.holds("false", on=True) is True
    assert banners.holds("true", on=True) is False
    assert banners.holds("true", on=False) is True
    assert Setting("dconf /x", ("*dark*",)).holds("'Adwaita-dark'", on=True) is True
    assert Setting("dconf /x", ("*dark*",)).holds("'Adwaita'", on=False) is True
    assert Setting("dconf /x").holds("5", on=True) is None


def test_the_desktop_is_known_from_what_it_calls_itself():
    assert desktop_named("XFCE") == "xfce"
    assert desktop_named("ubuntu:GNOME") == "gnome"
    assert desktop_named("X-Cinnamon") == "cinnamon"
    assert desktop_named("sway") is None
