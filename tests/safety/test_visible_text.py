"""A text as a person sees it before they approve it: all of it, and nothing in it hides."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from agent.safety.question_text import ending, excerpt, lines_of, merged
from agent.safety.text import places

TEXTS = st.text(
    alphabet=st.one_of(
        st.characters(codec="utf-8"),
        st.sampled_from(list(" \t\n\r\u200b\u202e\u0301\u0338⏎⟨⟩日a\u2800\u3164\ue000\U000e0041")),
    ),
    max_size=200,
)


def drawn(text: str, width: int = 38) -> list[str]:
    return [line.text for line in lines_of(text, width)]


@given(TEXTS, st.integers(4, 90))
def test_every_character_is_on_exactly_one_line_and_every_line_fits(text: str, width: int) -> None:
    lines = lines_of(text, width)
    at = 0
    for line in lines:
        assert line.start == at or line.start == line.end == at
        at = max(at, line.end)
        assert cell_len(line.text) <= width
    assert at == len(text)


def test_no_character_is_drawn_wider_than_the_line_has_room_for() -> None:
    every = (chr(code) for code in range(0x20, 0x110000) if not 0xD800 <= code < 0xE000)
    wide = "".join(char for char in every if cell_len(char) > 1)
    assert [line.text for line in lines_of(wide, 30) if cell_len(line.text) > 30] == []


@pytest.mark.parametrize("filler", ["\u4dc0\u4dc1", "\u2630\u2631", "\U0001d360\U0001d361", "☎✂"])
def test_signs_that_are_wide_push_nothing_out_of_sight(filler: str) -> None:
    hidden = "; rm -rf ~"
    for line in lines_of(filler[0] * 10 + filler[1] * 9 + hidden, 38):
        assert cell_len(line.text) <= 38


@given(TEXTS)
def test_what_is_drawn_can_be_seen_and_steers_nothing(text: str) -> None:
    for char in "".join(drawn(text)):
        assert char.isprintable()
        assert unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
        assert char not in "\u3164\u2800\u115f\ufe0f\u200b"


@given(TEXTS, TEXTS)
def test_different_texts_never_look_the_same(one: str, other: str) -> None:
    if one != other:
        assert drawn(one, 1000) != drawn(other, 1000)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("ls\nrm -rf ~\n", ["ls⏎", "rm -rf ~⏎"]),
        ("a\r\nb\rc", ["a⟨CR⟩⏎", "b⟨CR⟩", "c"]),
        ("a\tb", ["a⇥ b"]),
        ("a \n b  ", ["a␣⏎", " b ␣"]),
        ("\u202egnp.exe\u200b", ["⟨U+202E⟩gnp.exe⟨U+200B⟩"]),
        ("\x1b]52;c;\x07", ["⟨U+001B⟩]52;c;⟨U+0007⟩"]),
        ("a⏎b ⟨U+202E⟩", ["a⟨U+23CE⟩b ⟨U+27E8⟩U+202E⟨U+27E9⟩"]),
        ("e\u0301a\u0300\u0301\u0302", ["e\u0301a\u0300\u0301⟨U+0302⟩"]),
        ("\u0301", ["⟨U+0301⟩"]),
        (" \u0338x", [" ⟨U+0338⟩x"]),
        ("", []),
    ],
)
def test_what_cannot_be_seen_is_spelled_out(text: str, lines: list[str]) -> None:
    assert drawn(text) == lines


def test_what_repeats_itself_is_told_by_its_number() -> None:
    assert drawn("\n" * 5000 + "rm -rf ~") == ["⏎", "⏎", "⏎", "⟨the same 4,997 times more⟩", "rm -rf ~"]
    assert drawn("x" * 1500 + "y") == ["xxx⟨the same 1,497 times more⟩y"]
    assert drawn(" \n" * 999) == ["␣⏎", "␣⏎", "␣⏎", "⟨the same 996 times more⟩"]
    assert drawn("=" * 30) == ["=" * 30]


def test_a_sign_that_is_wider_than_the_line_counts_as_shown_with_its_last_part() -> None:
    lines = lines_of("ab\u202ecd", 4)
    assert "".join(line.text for line in lines) == "ab⟨U+202E⟩cd"
    [last] = [line for line in lines if line.text.endswith("⟩") or "⟩" in line.text]
    assert all(line.end <= 2 for line in lines if line.end < last.end)


def test_the_end_and_what_was_found_are_on_a_line_each() -> None:
    text = "harmless words " * 100 + "\nrm -rf ~/Documents\n" + "more words " * 50 + "\n" * 4000
    marks = merged(places(text, "rm -rf"))
    assert ending(text, 44, marks).text == "…re words␣⏎⏎⏎⟨the same 3,997 times more⟩"
    found = excerpt(text, 40, marks[0], marks)
    assert "⏎rm -rf ~/Documents⏎" in found.text
    assert [piece.text for piece in found.pieces if piece.marked] == ["rm -rf"]


@given(TEXTS, st.integers(8, 90))
def test_an_excerpt_fits_its_line(text: str, width: int) -> None:
    assert cell_len(ending(text, width).text) <= width
    assert cell_len(excerpt(text, width, (len(text) // 2, len(text) // 2 + 3)).text) <= width


def test_what_a_rule_found_is_marked_where_it_stands() -> None:
    text = "x rm -rf y"
    assert [text[start:end] for start, end in places(text, "rm -rf")] == ["rm -rf"]
    [line] = lines_of(text, 80, merged(places(text, "rm -rf")))
    assert [piece.text for piece in line.pieces if piece.marked] == ["rm -rf"]
