"""JSON with the known mistakes is read; what is cut or broken is named so."""

import ast
import json
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.families.base import ParseFailure
from agent.families.shared.lenient_json import MAX_DEPTH, clean, clean_text, first_object

PROPERTY = settings(deadline=None, max_examples=300)
KEYS = st.text("abc \"'{}[]“”：，\\\n", max_size=5)
PLAIN = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    PLAIN | st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text('abc"“”：', max_size=5), VALUES, max_size=4)


def read(text: str, *, closed: bool = True) -> dict[str, Any]:
    found = first_object(text, closed=closed)
    assert not isinstance(found, ParseFailure), found
    return found[0]


def kind(text: str, *, closed: bool = True) -> str:
    found = first_object(text, closed=closed)
    assert isinstance(found, ParseFailure), found
    assert found.message
    return found.kind


@PROPERTY
@given(
    OBJECTS, st.booleans(), st.sampled_from(["", "text before ", "[1] "]), st.sampled_from(["", "}", " and {more", "]"])
)
def test_right_json_is_read_to_the_letter(value: dict[str, Any], ascii_only: bool, before: str, after: str) -> None:
    text = before + json.dumps(value, ensure_ascii=ascii_only) + after
    found = first_object(text, closed=False)
    assert not isinstance(found, ParseFailure)
    assert found == (value, after)


@PROPERTY
@given(OBJECTS)
def test_a_python_literal_is_read_as_the_same_value(value: dict[str, Any]) -> None:
    if "'" in repr(value):
        assert read(repr(value)) == value


@PROPERTY
@given(OBJECTS, st.data())
def test_what_is_cut_off_is_never_completed(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=False)
    end = data.draw(st.integers(0, len(text) - 1))
    assert isinstance(first_object(text[:end], closed=False), ParseFailure)


@PROPERTY
@given(
    st.dictionaries(
        st.text("ab", max_size=3), st.lists(st.integers(0, 9), min_size=1, max_size=3), min_size=1, max_size=2
    )
)
def test_missing_brackets_are_added_inside_closed_tags_only(value: dict[str, Any]) -> None:
    text = json.dumps(value)
    assert read(text[:-1]) == read(text[:-2]) == value
    assert kind(text[:-1], closed=False) == kind(text[:-2], closed=False) == "truncated"


def test_an_open_string_is_not_closed_for_the_model() -> None:
    assert kind('{"text": "half a sen') == "bad_json"
    assert kind('{"text": "half a sen', closed=False) == "truncated"


def test_an_object_without_its_end_is_cut_only_where_no_tag_ends_it() -> None:
    assert kind("") == "no_action"
    assert kind("no braces [1]") == "no_action"
    assert kind("{", closed=False) == "truncated"
    assert kind("{broken}", closed=False) == "bad_json"
    assert kind("{" * 10) == "bad_json"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "9" * 41, "-" + "9" * 400])
def test_numbers_that_cannot_be_written_back_are_refused(number: str) -> None:
    assert kind(f'{{"a": {number}}}') == "bad_json"
    assert kind(f"{{'a': {number}}}") == "bad_json"


def test_an_identifier_of_twenty_digits_is_a_number() -> None:
    assert read('{"id": 12345678901234567890}') == {"id": 12345678901234567890}


@pytest.mark.parametrize("depth", [MAX_DEPTH, 300, 700, 990, 50_000])
def test_nesting_beyond_the_limit_is_refused_whatever_the_recursion_limit(depth: int) -> None:
    assert kind('{"a":' * depth + "[]" + "}" * depth) == "bad_json"
    assert kind("{'a':" * depth + "[]" + "}" * depth) == "bad_json"
    assert kind('{"a":' + "[" * depth + "]" * depth + "}") == "bad_json"


def test_nesting_up_to_the_limit_is_read() -> None:
    text = '{"a":' * (MAX_DEPTH - 1) + "[]" + "}" * (MAX_DEPTH - 1)
    assert read(text) == json.loads(text)
    with pytest.raises(ValueError, match="deep"):
        clean([[[]]], depth=2)


@pytest.mark.parametrize(
    "text",
    [
        *("{'a': __import__('os').getcwd()}", "{'a': open('x')}", "{'a': [x for x in 'ab']}", "{'a': lambda: 0}"),
        *("{'a': {1, 2}}", "{'a': b'x'}", "{'a': 1j}", "{'a': ...}", "{**{'a': 1}}", "{'a'}", "{f'{1}': 1}"),
        "{'a': 1 if 1 else 2}",
    ],
)
def test_code_is_never_run_and_never_a_value(text: str) -> None:
    assert kind(text) == "bad_json"


def test_odd_escapes_in_a_python_literal_print_no_warning() -> None:
    text = r"{'path': 'C:\dir'}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SyntaxError):
            ast.literal_eval(text)  # what would be printed over the screen otherwise
        assert read(text) == {"path": r"C:\dir"}


def test_text_that_is_too_long_is_refused_unread() -> None:
    assert kind('{"a": "' + "x" * 200_000 + '"}') == "bad_json"


def test_lone_surrogates_become_the_replacement_character() -> None:
    assert clean_text("a\ud800b") == "a\ufffdb"
    assert clean_text("\ud83d\ude00") == "😀"
    assert clean({"\udfff": ["\ud800", 1, None]}) == {"\ufffd": ["\ufffd", 1, None]}


@PROPERTY
@given(st.text(st.characters(), max_size=30))
def test_cleaned_text_can_be_written_and_is_cleaned_once(text: str) -> None:
    cleaned = clean_text(text)
    cleaned.encode()
    assert clean_text(cleaned) == cleaned
    if not any("\ud800" <= char <= "\udfff" for char in text):
        assert cleaned == text


def test_a_comma_after_the_last_item_is_dropped_and_one_in_a_text_stays() -> None:
    assert read('{"a": [1, 2,], "b": "x,]", }') == {"a": [1, 2], "b": "x,]"}
    assert kind('{"a": [1,,]}') == "bad_json"
