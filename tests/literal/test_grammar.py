"""How instructions are read: cut into parts, quotations kept, and never anything but goals or a refusal."""

import random

import pytest

from agent.literal.goals import Choose, Click, Close, Open, Press, Target, Toggle, Type
from agent.literal.language.grammar import builder, read_instruction
from agent.literal.language.sentences import NotUnderstoodError
from agent.literal.language.wording import describe_goal
from agent.literal.vocabulary.quotes import hide_quotes, show
from foundation.configs import load_config

_VERBS = load_config("sentences.toml")["verbs"].split()
_MARKS = [("'", "'"), ('"', '"'), ("“", "”"), ("„", "“"), ("‚", "‘"), ("«", "»"), ("»", "«"), ("`", "`")]


def test_every_entry_of_the_table_names_a_builder():
    tables = [
        load_config("grammar.toml")["rules"],
        *(load_config("sentences.toml")[one] for one in ("phrases", "wishes")),
    ]
    assert all(callable(builder(entry["does"])) for table in tables for entry in table if entry["does"])


def test_quoted_text_is_never_read_as_an_instruction():
    text = "open the door, then close it and press enter"
    assert read_instruction(f"type '{text}' and press enter") == [Type(text), Press(("enter",))]


@pytest.mark.parametrize("verb", _VERBS)
def test_no_verb_in_quotation_marks_is_read_as_one(verb):
    assert read_instruction(f"click '{verb} and {verb} it'") == [Click(Target(f"{verb} and {verb} it"))]
    assert read_instruction(f'type "if not, {verb} all" and press enter') == [
        Type(f"if not, {verb} all"),
        Press(("enter",)),
    ]


@pytest.mark.parametrize(("opening", "closing"), _MARKS)
def test_quotations_survive_whatever_marks_they_stand_in(opening, closing):
    words = ["don't", "a  b", "and", "open", "ä", "…", "50 %", "x.txt", ","]
    draw = random.Random(7)
    for _ in range(40):
        text = " ".join(draw.choices(words, k=5))
        if closing in ("'", "‘") or opening == "'":
            text = text.replace("don't", "do")
        assert read_instruction(f"click {opening}{text}{closing}") == [Click(Target(text))]


def test_hidden_quotations_can_be_put_back():
    text = "say “one” and 'two', or it's 5\" long"
    quoted = []
    hidden = hide_quotes(text, quoted)
    assert quoted == ["one", "two"]
    assert show(hidden, quoted) == "say one and two, or it's 5\" long"


def test_quotes_keep_their_spaces_and_line_ends():
    assert read_instruction('type "a  b\\nc"') == [Type("a  b\nc")]


def test_an_apostrophe_does_not_end_a_quotation():
    assert read_instruction("type 'don't stop' and close it") == [Type("don't stop"), Close()]


def test_names_that_hold_and_stay_whole():
    assert read_instruction("click Mouse and Touchpad, then click Session and Startup") == [
        Click(Target("Mouse and Touchpad")),
        Click(Target("Session and Startup")),
    ]


def test_what_stands_after_in_may_be_a_place_or_a_part_of_the_name():
    [goal] = read_instruction("enable Show icons in toolbars")
    assert goal == Toggle(Target("Show icons", inside="toolbars", whole="Show icons in toolbars"), on=True)
    [goal] = read_instruction("choose Daloa in Style")
    assert goal == Choose("Daloa", Target("Style", whole="Daloa in Style"))


def test_lines_and_semicolons_end_a_part():
    goals = [Open("settings"), Click(Target("Keyboard"))]
    assert read_instruction("open settings\nclick Keyboard") == goals
    assert read_instruction("Open settings; click Keyboard.") == goals


def test_every_goal_can_be_told_in_words():
    goals = read_instruction("open x, click y, enable z, type 'a' into b, press f5, scroll up, wait, close it")
    assert [describe_goal(goal) for goal in goals] == [
        "open “x”",
        "click “y”",
        "enable “z”",
        "type “a” into “b”",
        "press f5",
        "scroll up",
        "wait 1 s",
        "close the window",
    ]


_WORDS = [
    *"open click the and then in of to it set turn on off make bigger please if not all folder called".split(),  # noqa: SIM905
    *"rename trash calculate times save as tab button second last under settings".split(),  # noqa: SIM905
    *("50 %", "'quoted text'", '"', "'", "„", "“", ",", ".", "\n", ";", ">", "Do Not Disturb", "12", "a.txt", "\x00"),
    *("\x01", "0", "Ä", "🙂", "(", ")", "*", "[", "{what}", "\\", "would you mind"),
]


def test_any_words_become_goals_or_are_refused():
    draw = random.Random(11)
    for _ in range(3000):
        text = " ".join(draw.choices(_WORDS, k=draw.randint(1, 12)))
        try:
            goals = read_instruction(text)
        except NotUnderstoodError:
            continue
        assert goals
        assert read_instruction(text) == goals  # read again, it means the same
        assert all(describe_goal(goal) for goal in goals)


@pytest.mark.parametrize(
    "piece",
    [
        "open a and ",
        "in the ",
        "set x to ",
        " 'a",
        "the ",
        "turn ",
        "a, ",
        "to in of ",
        "please ",
        "1 + ",
        "\x00",
        "click A and B, ",
    ],
)
def test_long_instructions_are_read_or_refused_without_running_away(piece):
    """A runaway expression would take hours on these."""
    try:
        goals = read_instruction(piece * (10_000 // len(piece)))
    except NotUnderstoodError as error:
        assert str(error)
    else:
        assert goals
