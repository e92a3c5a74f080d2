"""The gate for foreign text: nothing steers, hides or turns round, and nothing is lost."""

import io
import json
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stubs.hostile import FORBIDDEN

from foundation import printing
from foundation.foreign_text import harmless, on_one_line, printable
from foundation.rich_console import GatedConsole

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=60)
PROPERTY = settings(deadline=None, max_examples=300)


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [
        ("\x1b]52;c;ZXZpbA==\x07", "\\x1b]52;c;ZXZpbA==\\x07"),
        ("\x9b31mred", "\\x9b31mred"),
        ("invoice\u202egnp.exe", "invoice\\u202egnp.exe"),
        ("a\u2066b\u2069\u200f\u061c", "a\\u2066b\\u2069\\u200f\\u061c"),
        ("rm\u200b -rf\ufeff", "rm\\u200b -rf\\ufeff"),
        ("hi\U000e0041", "hi\\U000e0041"),
        ("one\u2028two\u2029", "one\\u2028two\\u2029"),
        ("half \ud83d", "half \\ud83d"),
        ("\x7f\x00\x08", "\\x7f\\x00\\x08"),
        ("blank\u00a0of\u3000widths", "blank of widths"),
        ("❤\ufe0f is a heart", "❤ is a heart"),
        ("Grüße, 世界, Привет, שלום 👍", "Grüße, 世界, Привет, שלום 👍"),
        ("[link=https://x.example]click[/link]", "[link=https://x.example]click[/link]"),
    ],
)
def test_what_is_not_simply_seen_is_spelled_out(foreign: str, shown: str) -> None:
    assert printable(foreign) == harmless(foreign) == shown


def test_lines_stay_lines_only_where_they_may() -> None:
    assert harmless("a\r\n\tb\rc") == "a\n\tb\\rc"
    assert printable("a\r\n\tb") == "a\\r\\n\\tb"
    assert on_one_line(" a\r\n\t\u2028 b ") == "a b"


@PROPERTY
@given(ANY_TEXT)
def test_no_text_gets_through_that_steers_hides_or_turns_round(text: str) -> None:
    for shown in (printable(text), harmless(text), on_one_line(text)):
        assert not FORBIDDEN.search(shown)
        shown.encode("utf-8")
    assert "\n" not in printable(text)
    assert all(unicodedata.category(char)[0] != "C" for char in printable(text))


@PROPERTY
@given(ANY_TEXT)
def test_what_passed_the_gate_passes_it_again_as_it_is(text: str) -> None:
    assert printable(printable(text)) == printable(text)
    assert harmless(harmless(text)) == harmless(text)


@PROPERTY
@given(ANY_TEXT)
def test_a_printed_line_is_one_line_and_harmless(text: str) -> None:
    out = io.StringIO()
    printing.put(text, "ours", to=out)
    lines = out.getvalue().split("\n")
    assert lines[1:] == ["ours", ""]
    assert not FORBIDDEN.search(lines[0])


@PROPERTY
@given(ANY_TEXT)
def test_printed_json_is_ascii_and_the_same_value(text: str) -> None:
    out = io.StringIO()
    printing.put_json({"text": text}, to=out)
    assert out.getvalue().isascii()
    assert out.getvalue()[:-1].isprintable()
    assert json.loads(out.getvalue()) == {"text": text}


def test_a_terminal_that_lacks_a_character_ends_nothing() -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    printing.put("→ Grüße", to=out)
    assert out.buffer.getvalue() == b"\\u2192 Gr\\xfc\\xdfe\n"  # type: ignore[attr-defined]  # the bytes beneath


@PROPERTY
@given(ANY_TEXT)
def test_a_console_of_rich_lets_only_rich_steer(text: str) -> None:
    out = io.StringIO()
    GatedConsole(file=out, force_terminal=True, width=200, markup=False).print(text, style="bold")
    without_own = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert not FORBIDDEN.search(without_own)


def test_a_console_of_rich_writes_no_links() -> None:
    out = io.StringIO()
    GatedConsole(file=out, force_terminal=True).print("[link=https://x.example]click[/link]")
    assert "\x1b]8" not in out.getvalue()
    assert "click" in out.getvalue()
