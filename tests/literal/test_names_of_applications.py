"""An application's own name comes before everything else that its words may mean."""

import os

import pytest

from agent.desktop.apps.catalogue import App, Catalogue
from agent.desktop.apps.linux import installed_apps
from agent.literal.goals import Open
from agent.literal.language.grammar import read_instruction
from foundation.configs import load_config

_DESKTOPS = ("XFCE", "GNOME", "KDE", "X-Cinnamon", "MATE")
#: Names that hold words for kinds of things.
_NAMES = ("Window Manager", "Window Manager Tweaks", "File Manager Settings", "File Management", "Files", "Windows")


@pytest.mark.parametrize("desktop", _DESKTOPS)
def test_the_own_name_of_every_installed_application_opens_it(desktop):
    catalogue = Catalogue(apps := list(installed_apps({**os.environ, "XDG_CURRENT_DESKTOP": desktop})))
    names = [app.name for app in apps]
    opened = {name: catalogue.find(_asked_for(f"open {name}")) for name in names}
    assert {name: app and app.name for name, app in opened.items()} == {name: name for name in names}


@pytest.mark.parametrize("desktop", ["xfce", "gnome", "kde", "cinnamon", "mate"])
def test_the_name_of_every_page_of_the_tables_opens_it_however_it_is_written(desktop):
    names = [page["app"] for page in load_config(f"places/{desktop}.toml")["pages"].values()]
    apps = Catalogue([*(App(name, name) for name in names), App("thunar", "Thunar", ("File Manager",))])
    for name in names:
        for written in (name, name.lower()):
            assert apps.find(_asked_for(f"open {written}, click Fonts")).name == name


@pytest.mark.parametrize("name", _NAMES)
def test_words_of_a_name_do_not_say_what_kind_of_thing_it_is(name):
    assert read_instruction(f"open {name}") == [Open(name)]


def _asked_for(sentence: str) -> str:
    """What the catalogue is asked for by the first goal of a sentence."""
    goal = read_instruction(sentence)[0]
    assert isinstance(goal, Open)
    assert goal.kind in ("", "settings")
    return f"{goal.name} settings" if goal.kind == "settings" else goal.name
