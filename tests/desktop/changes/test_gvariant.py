"""Values of dconf: whatever bytes are read, and what is put back is what was told."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.desktop.changes.dconf import serialized, text_of

TEXTS = [
    "'prefer-dark'", '"it\'s\\n\\u200b é"', "uint32 480", "1.1000000000000001", "true", "@as []", "b'hi'",
    "[byte 0x01, 0x02]", "[('xkb', 'us'), ('ibus', 'libpinyin')]", "(1, 'x', @ms nothing, @md 5.0)",
    "(objectpath '/a', signature 's', int64 5, int16 3)", "[<1>, <'a'>]", "{'x': <uint32 5>}",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_a_value_is_told_as_it_is_put_back(text: str) -> None:
    assert text_of(serialized("v", f"<{text}>")) == text


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=20))
def test_a_key_of_any_name_stays_one_text(name: str) -> None:
    change = serialized("a{smv}", f"{{{json.dumps(name, ensure_ascii=False)}: nothing}}")
    assert change.startswith(name.encode() + b"\0")


@given(st.binary(max_size=40), st.sampled_from(["", "s", "as", "a{sv}", "(si)", "mi", "zz", "((((", "aaaav"]))
def test_bytes_of_no_value_are_an_error_and_nothing_else(data: bytes, kind: str) -> None:
    try:
        told = text_of(data + b"\0" + kind.encode())
    except ValueError:
        return
    assert isinstance(told, str)


@pytest.mark.parametrize(("kind", "text"), [("i", "'x'"), ("v", "<1"), ("v", "<1>, 'x': <2>"), ("s", "'\0'")])
def test_a_text_of_another_type_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ValueError, match="type"):
        serialized(kind, text)
