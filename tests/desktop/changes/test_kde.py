"""KDE's configuration files: read key by key, and one key put back without touching the others."""

from hypothesis import given
from hypothesis import strategies as st

from agent.desktop.changes.kde import edited, parse

FILE = b"""[$Version]
update_info=kwin.upd:replace

[General]
ColorScheme=BreezeLight
Name[de]=Hallo
# a comment=no key

[Containments][1][Wallpaper]
Image=file:///a=b
"""


def test_every_key_is_found_in_its_groups():
    assert parse(FILE) == {
        (("$Version",), "update_info"): "kwin.upd:replace",
        (("General",), "ColorScheme"): "BreezeLight",
        (("General",), "Name[de]"): "Hallo",
        (("Containments", "1", "Wallpaper"), "Image"): "file:///a=b",
    }


def test_a_key_is_replaced_in_its_place():
    assert edited(FILE, ("General",), "ColorScheme", "BreezeDark") == FILE.replace(b"BreezeLight", b"BreezeDark")


def test_a_key_is_taken_out():
    assert edited(FILE, ("General",), "ColorScheme", None) == FILE.replace(b"ColorScheme=BreezeLight\n", b"")


NAME = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=8)
VALUE = st.text(st.characters(exclude_characters="\n\r", exclude_categories=("Cs", "Cc", "Z")), max_size=12)
PLACES = st.tuples(st.lists(NAME, max_size=2).map(tuple), NAME)


@given(st.dictionaries(PLACES, VALUE, max_size=6), PLACES, st.none() | VALUE)
def test_setting_one_key_changes_that_key_alone(values, place, value):
    data = b""
    for (groups, key), one in values.items():
        data = edited(data, groups, key, one)
    assert parse(data) == values
    wanted = {key: one for key, one in values.items() if key != place} | ({} if value is None else {place: value})
    assert parse(edited(data, *place, value)) == wanted
