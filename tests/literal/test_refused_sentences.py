"""What is refused before anything is done, and what is said of it."""

import pytest

from agent.literal.goals import Close, Target, Toggle
from agent.literal.language.grammar import read_instruction
from agent.literal.language.sentences import NotUnderstoodError


def test_what_follows_a_reason_is_done():
    assert read_instruction("turn on dark mode, it is nicer, and close Thunar") == [
        Toggle(Target("dark mode"), on=True),
        Close("Thunar"),
    ]


@pytest.mark.parametrize(
    "sentence",
    ["turn off the compositor, my machine is slow", "turn off the compositor, it's too old"],
)
def test_an_opinion_after_an_instruction_is_no_second_thing(sentence):
    assert read_instruction(sentence) == [Toggle(Target("compositor"), on=False)]


@pytest.mark.parametrize(
    "sentence",
    [
        "turn off the compositor, you will see",
        "close Thunar and the panel is hidden",
        "click Save and how it ends",
    ],
)
def test_any_other_clause_after_an_instruction_is_no_name(sentence):
    with pytest.raises(NotUnderstoodError, match="adds"):
        read_instruction(sentence)


@pytest.mark.parametrize(
    ("sentence", "nearest"),
    [
        ("opne mousepad", "open X"),
        ("clikc Apply", "click X"),
        ("illuminate the natural scrolling", "turn on natural scrolling"),
        ("make me a sandwich", "make X bigger"),
    ],
)
def test_what_is_not_understood_is_said_with_the_nearest_that_is(sentence, nearest):
    with pytest.raises(NotUnderstoodError, match=f"“{nearest}”"):
        read_instruction(sentence)


def test_a_question_is_not_taken_for_a_misspelled_verb():
    with pytest.raises(NotUnderstoodError) as raised:
        read_instruction("what is the capital of France")
    assert "nearest" not in str(raised.value)


def test_a_refused_word_in_a_name_may_be_said_in_quotation_marks():
    with pytest.raises(NotUnderstoodError, match="quotation marks"):
        read_instruction("enable Warn if unsaved")
    assert read_instruction("enable 'Warn if unsaved'")
