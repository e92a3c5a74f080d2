"""Texts written and saved, and sums: read back from the page, the file and the display."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.changes import Change
from agent.core.geometry import Region
from agent.literal.do import keyboard
from agent.literal.do.keyboard import is_number
from agent.literal.vocabulary.numbers import value_of
from agent.screen.outline import ShownWindow
from tests.literal.made_up import element, ending, follow, screen
from tests.literal.test_tasks_folders import done

EDITOR = ShownWindow("Untitled 1 - Mousepad", "Mousepad", Region(0, 0, 800, 700), active=True)
CHOOSER = ShownWindow("Save As", "Mousepad", Region(50, 50, 600, 500), active=True)
CALCULATOR = ShownWindow("galculator", "Galculator", Region(0, 0, 300, 400), active=True)


def page(text, changes=()):
    area = element(
        "text", "", 10, 50, 700, 500, value=text, states={"focused", "editable", "multi_line"},
        window=EDITOR.title, app=EDITOR.app,
    )  # fmt: skip
    return screen(area, windows=(EDITOR,), changes=changes)


def chooser(name, changes=()):
    field = element(
        "text", "", 100, 60, 300, 30, value=name, states={"focused", "editable"}, window=CHOOSER.title, app=CHOOSER.app
    )
    return screen(field, windows=(CHOOSER, EDITOR), changes=changes)


def saved(size, name="a.txt"):
    return [Change("file", f"/home/me/{name}", None, f"{size} bytes")]


WRITE = "write 'milk and eggs' in the text editor and save it as a.txt"
NAMED = [chooser("Untitled"), chooser("Untitled"), chooser("Untitled"), chooser(""), chooser("a.txt")]


@pytest.mark.parametrize("size", [13, 14])
def test_a_text_is_written_read_back_and_saved_and_the_file_of_its_size_is_the_evidence(size):
    screens = [page(""), page("milk and eggs"), *NAMED, page("milk and eggs", saved(size))]
    replies = follow(WRITE, *screens)
    assert done(replies)[:-1] == ["milk and eggs", "ctrl+s", "end", "shift+home", "backspace", "a.txt", "enter"]
    assert ending(replies[-1]) == ("success", True)


def test_a_file_of_another_size_is_not_the_text():
    replies = follow(WRITE, page(""), page("milk and eggs"), *NAMED, page("milk and eggs", saved(3)))
    assert ending(replies[-1])[0] == "fail"


def test_a_question_whether_to_replace_a_file_is_not_answered():
    question = ShownWindow("Question", "Mousepad", Region(200, 200, 300, 100), active=True)
    asks = screen(element("push button", "Replace"), windows=(question, CHOOSER, EDITOR))
    replies = follow(WRITE, page(""), page("milk and eggs"), *NAMED, *[asks] * 4, chooser("a.txt"), *[page("x")] * 4)
    assert done(replies)[-3:-1] == ["escape", "escape"]
    assert ending(replies[-1])[0] == "fail"
    assert "replace no file" in replies[-1].arguments["text"]


def test_what_is_written_on_a_page_already_stays():
    replies = follow(WRITE, page("old"), page(""), page("milk and eggs"))
    assert done(replies)[:2] == ["ctrl+n", "milk and eggs"]


def test_an_editor_that_begins_with_a_welcome_is_asked_for_a_page():
    welcome = screen(element("label", "Welcome to KWrite", window=EDITOR.title, app=EDITOR.app), windows=(EDITOR,))
    replies = follow(WRITE, screen(), welcome, welcome, page(""), page("milk and eggs"))
    assert done(replies)[:4] == ["text editor", "wait", "ctrl+n", "milk and eggs"]


def test_a_text_that_does_not_arrive_is_not_saved():
    replies = follow(WRITE, page(""), *[page("milk")] * 6)
    assert "ctrl+s" not in done(replies)
    assert ending(replies[-1])[0] == "fail"


def test_saving_is_shown_by_a_file():
    changed = [Change("file", "/home/me/a.txt", "3 bytes", "5 bytes")]
    assert ending(follow("save", page("x"), page("x", changed))[-1]) == ("success", True)
    assert ending(follow("save", page("x"), *[page("x")] * 6)[-1]) == ("success", False)


def test_what_a_program_writes_into_a_hidden_folder_is_no_document():
    history = [Change("file", "~/.config/browser/History", "3 bytes", "5 bytes")]
    assert ending(follow("save", page("x"), *[page("x", history)] * 6)[-1]) == ("success", False)


# Sums


def display(text):
    shown = element("text", "", 10, 10, 200, 40, value=text, window=CALCULATOR.title, app=CALCULATOR.app)
    button = element("push button", "12", 10, 60, window=CALCULATOR.title, app=CALCULATOR.app)
    return screen(shown, button, windows=(CALCULATOR,))


def test_a_sum_is_entered_by_keys_and_the_display_is_read():
    screens = [display("0"), display("0"), display("1"), display("12"), display("12+"), display("12+3")]
    replies = follow("calculate 12+3", *screens, display("15"))
    assert done(replies)[:-1] == ["escape", "1", "2", "+", "3", "enter"]
    assert ending(replies[-1]) == ("success", True)
    assert "15" in replies[-1].arguments["text"]


def test_a_display_that_shows_something_else_is_no_result():
    replies = follow("calculate 12+3", *[display("0")] * 6, *[display("123")] * 6)
    assert ending(replies[-1])[0] == "fail"
    assert "123" in replies[-1].arguments["text"]


@pytest.mark.parametrize(
    ("expression", "value"),
    [("12*12", 144), ("15/100*80", 12), ("(1+2)*3", 9), ("2^10", 1024), ("-3+1", -2), ("007+1", 8),
     ("1.5*2", 3), ("0.1+0.2", Fraction(3, 10))],
)  # fmt: skip
def test_sums_are_exact(expression, value):
    assert value_of(expression) == value


@pytest.mark.parametrize("expression", ["", "1/0", "9^9^9", "2^999999", "1+", "a", "__import__('os')", "9" * 60, "1;2"])
def test_what_is_no_sum_or_too_large_has_no_value(expression):
    assert value_of(expression) is None


@given(st.text(alphabet="0123456789+-*/^().", max_size=40))
def test_no_expression_breaks_or_takes_long(expression):
    value_of(expression)


@pytest.mark.parametrize(
    ("shown", "value", "same"),
    [
        ("144", Fraction(144), True),
        ("1,234.5", Fraction("1234.5"), True),
        ("1.234,5", Fraction("1234.5"), True),
        ("0,33333333", Fraction(1, 3), True),
        ("0.6666666667", Fraction(2, 3), True),
        ("145", Fraction(144), False),
        ("0", Fraction(1, 3), False),
        ("1.44", Fraction(144), False),
        ("1.440", Fraction(1440), True),  # as German writes it
    ],
)
def test_a_displays_number_is_compared_as_exactly_as_it_is_shown(shown, value, same):
    assert is_number(shown, value) is same


@pytest.mark.parametrize(("held", "status"), [("Br", "fail"), ("Bread", "success"), ("BREAD", "success")])
def test_a_field_that_keeps_only_the_beginning_has_not_taken_the_text(held, status):
    def field(value):
        return screen(element("entry", "Title", value=value, states={"focused", "editable"}))

    replies = follow("type 'Bread' into Title", field(""), field(""), field(held), stays=True)
    assert ending(replies[-1])[0] == status


@pytest.mark.parametrize(
    ("shown", "number", "is_input"),
    [
        ("144÷12", "12", True),
        ("0−3", "−3", True),
        ("144÷12 = 12", "12", False),
        ("−3", "−3", False),
        ("7*6=42", "42", False),
    ],
)
def test_the_end_of_what_was_entered_is_no_result(shown, number, is_input):
    assert keyboard._is_input(shown, number) is is_input
