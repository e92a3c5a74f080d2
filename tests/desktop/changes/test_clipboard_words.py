"""What is told of a text in the clipboard."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.desktop.protocol.clipboard import in_words


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a", "1 character: a"),
        ("two words", "9 characters: two words"),
        ("x" * 40, f"40 characters: {'x' * 40}"),
        ("x" * 41, "41 characters"),
        (f"see {'x' * 60}", "64 characters: see …"),
        (f"{'x' * 40} and more", f"49 characters: {'x' * 40} …"),
    ],
)
def test_a_text_is_told_by_its_length_and_its_first_words(text: str, told: str) -> None:
    assert in_words(text) == told


@given(st.text(min_size=41))
def test_no_word_is_told_in_part(text: str) -> None:
    _, _, shown = in_words(text).partition(": ")
    words = shown.removesuffix(" …").split()
    assert text.split()[: len(words)] == words
