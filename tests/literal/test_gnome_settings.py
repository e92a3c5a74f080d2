"""What the engine does in GNOME Settings 43, on outlines as they were told there."""

from made_up import element, outline, talk, words

from agent.families.literal.screen_text import ScreenText
from agent.literal.engine import Engine

SEARCH_BUTTON = element("push button", "Search", x=116, y=116, w=24, h=24, source="tree")
SIDE_ROW = element("list item", "Search", x=119, y=247, w=271, h=42)


def reply(instruction, *elements):
    return Engine().reply(talk(instruction, ScreenText(outline(*elements)))).arguments


def test_a_page_is_gone_to_by_its_row_and_not_by_a_button_of_the_same_name():
    for sentence in ("go to Search", "click Search"):
        assert reply(sentence, SEARCH_BUTTON, SIDE_ROW)["coordinate"] == [254, 268]


def test_a_row_without_a_name_is_not_called_like_one_of_the_texts_in_it():
    row = element("list item", "", x=371, y=118, w=538, h=193)
    button = element("push button", "Dark", x=655, y=139, w=169, h=127, source="tree")
    dark, default = words("Dark", 730, 281), words("Default", 520, 281)
    assert reply("click Dark", row, button, default, dark)["coordinate"] == [740, 202]


def test_the_switch_in_a_title_bar_belongs_to_the_title():
    row = element("list item", "Camera", x=119, y=146, w=271, h=42, states=("selected",))
    title = element("label", "Camera", x=610, y=119, w=60, h=18)
    switch = element("check box", "Enable", x=880, y=116, w=44, h=22, source="tree", states=("checked",))
    answer = reply("turn off Camera", row, title, switch)
    assert (answer["action"], answer["coordinate"]) == ("click", [891, 127])
