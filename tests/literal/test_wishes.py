"""What a wish about a setting means, and what is none."""

import pytest

from agent.literal.goals import Toggle
from agent.literal.language.grammar import read_instruction
from agent.literal.language.sentences import NotUnderstoodError
from agent.literal.language.wishes import read_wish, told_about
from agent.literal.vocabulary.places import is_switch, known_thing
from foundation.configs import load_config

_THINGS = load_config("places/things.toml")
_SWITCHES = [thing for thing, entry in _THINGS.items() if is_switch(entry["names"][0])]


def _meaning(sentence):
    """Return the thing that a sentence switches, and the state that the thing gets."""
    [goal] = read_instruction(sentence)
    assert isinstance(goal, Toggle)
    thing, same = known_thing(goal.target.name) or known_thing(goal.target.whole)
    return thing, goal.on is same


@pytest.mark.parametrize("thing", _SWITCHES)
def test_a_switch_is_wanted_and_not_wanted_by_its_name(thing):
    name = _THINGS[thing]["names"][0]
    assert _meaning(f"I'd really like {name} back") == (thing, True)
    assert _meaning(f"I don't want {name} any more") == (thing, False)


@pytest.mark.parametrize(
    ("sentence", "thing", "on"),
    [
        ("the keys should repeat when I hold them down", "key-repeat", True),
        ("could the keys stop repeating when I hold them", "key-repeat", False),
        ("I don't want the keys to stop repeating", "key-repeat", True),
        ("the cursor keeps blinking", "cursor-blinking", False),
        ("keep the cursor from blinking", "cursor-blinking", False),
        ("keep the cursor blinking", "cursor-blinking", True),
        ("I hate that blinking cursor", "cursor-blinking", False),
        ("let it be a cursor that doesn't flash", "cursor-blinking", False),
        ("my clock should show AM and PM", "time-format", False),
        ("just one click should open folders", "single-click", True),
        ("nobody should interrupt me", "do-not-disturb", True),
        ("let my notifications through again", "do-not-disturb", False),
        ("the touchpad should not react while I type", "disable-while-typing", True),
        ("the dock should hide when I am not using it", "panel-autohide", True),
        ("the taskbar should always stay visible", "panel-autohide", False),
        ("windows should not snap when I drag them to the edge of the screen", "screen-edges", False),
        ("windows should snap to the borders of the screen", "snap-to-borders", True),
        ("I want the folders listed before the files", "folders-first", True),
        ("take the icons out of the menus", "menu-images", False),
        ("reduce the blue light", "night-light", True),
    ],
)
def test_the_order_of_the_words_does_not_matter(sentence, thing, on):
    assert _meaning(sentence) == (thing, on)


@pytest.mark.parametrize(
    "sentence",
    [
        "the cursor should blink twice",  # a word that nothing knows
        "the menu bar is gone now",  # asks for nothing
        "the cursor blinks",
        "the keys no longer repeat",
        "the keys stop repeating",
        "the touchpad does nothing while I type",
        "I'd like a cursor that keeps blinking",
        "I'll take the dark theme",
        "I need help with sticky keys",
        "I like the dark theme",
        "change the key repeat",
        "why does the cursor blink",
        "should I use sticky keys",
        "I hate that the cursor does not blink",  # a complaint and a denial
        "I never want all the animations",
        "I don't want this stupid cursor to stop blinking",
        "lock the screen",  # at once
        "turn the screen off in 5 minutes",
        "turn on dark mode when it gets dark",
        "some notifications should go away",
        "I want sticky keys or slow keys",
    ],
)
def test_what_is_no_wish_is_not_read_as_one(sentence):
    assert not list(read_wish(sentence))
    with pytest.raises(NotUnderstoodError):
        read_instruction(sentence)


def test_a_wish_that_fits_two_things_is_not_read():
    assert not list(read_wish("I want slow sticky keys"))


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("My mouse pointer crawls across the screen, make it faster", ["mouse pointer speed"]),
        ("Sticky keys are a nuisance, turn them off", ["sticky keys"]),
        ("The text editor covers everything, close it", ["text editor"]),
    ],
)
def test_a_statement_before_an_order_says_only_what_it_is(sentence, names):
    [goal] = read_instruction(sentence)
    target = goal.target
    assert [target if isinstance(target, str) else target.name] == names


@pytest.mark.parametrize(
    "sentence",
    [
        "The lines in the corner are gigantic, shrink them",  # it is nothing known
        "open Mousepad. The other window is Thunar and the terminal, close it",
        "I mean the second one, click it",
        "I only need the first page, print the document",
    ],
)
def test_a_statement_that_may_say_more_is_not_passed_over(sentence):
    with pytest.raises(NotUnderstoodError):
        read_instruction(sentence)


def test_a_statement_has_a_subject_and_a_verb_and_names_one_thing():
    assert told_about("my calculator is in the way") == "calculator"
    assert told_about("the sound of the calculator is loud") == ""
    assert told_about("I want the text bigger") == ""
    assert told_about("the text editor") == ""
    assert told_about("my boss says") == ""
