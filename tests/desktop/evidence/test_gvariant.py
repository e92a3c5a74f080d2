"""Values of dconf: read as GLib's own tools write them, and written as dconf reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.desktop.evidence.gvariant import as_text, decode, decode_boxed, encode

WHOLE = {"y": (0, 255), "n": (-(2**15), 2**15 - 1), "q": (0, 2**16 - 1), "i": (-(2**31), 2**31 - 1),
         "u": (0, 2**32 - 1), "x": (-(2**63), 2**63 - 1), "t": (0, 2**64 - 1)}  # fmt: skip
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=20)
BASIC = [st.tuples(st.just(kind), st.integers(*limits)) for kind, limits in WHOLE.items()] + [
    st.tuples(st.just("b"), st.booleans()),
    st.tuples(st.just("d"), st.floats(allow_nan=False)),
    st.tuples(st.just("s"), TEXT),
]


def values_of(kind):
    """Values of one type."""
    if kind in WHOLE:
        return st.integers(*WHOLE[kind])
    if kind[0] == "a":
        return st.lists(values_of(kind[1:]), max_size=5)
    if kind[0] == "m":
        return st.none() | values_of(kind[1:]).map(lambda value: {"just": value})
    return {
        "b": st.booleans(),
        "d": st.floats(allow_nan=False),
        "s": TEXT,
        "v": st.one_of(BASIC).map(lambda pair: {"type": pair[0], "value": pair[1]}),
        "(si)": st.tuples(TEXT, st.integers(*WHOLE["i"])).map(list),
        "(yt)": st.tuples(st.integers(0, 255), st.integers(*WHOLE["t"])).map(list),
        "(sbs)": st.tuples(TEXT, st.booleans(), TEXT).map(list),
        "{sv}": st.tuples(TEXT, st.one_of(BASIC).map(lambda pair: {"type": pair[0], "value": pair[1]})).map(list),
        "()": st.just([]),
    }[kind]


KINDS = st.sampled_from([*WHOLE, "b", "d", "s", "v", "(si)", "(yt)", "(sbs)", "{sv}"])
NESTED = st.tuples(st.sampled_from(["", "a", "aa", "m", "ma", "am", "mm"]), KINDS).map("".join)


@given(NESTED.flatmap(lambda kind: st.tuples(st.just(kind), values_of(kind))))
def test_what_is_written_is_read_again(typed):
    kind, value = typed
    assert decode(kind, encode(kind, value)) == value
    boxed = encode("v", {"type": kind, "value": value})
    assert decode_boxed(boxed) == {"type": kind, "value": value}


@given(NESTED, st.binary(max_size=60))
def test_bytes_of_no_value_are_an_error_and_nothing_else(kind, data):
    try:
        value = decode(kind, data)
    except ValueError:
        return
    assert isinstance(as_text(kind, value), str)


@given(st.text("abdsv(){}mayi", max_size=12), st.binary(max_size=12))
def test_whatever_is_called_a_type_is_read_or_refused(kind, data):
    try:
        decode(kind, data)
    except ValueError:
        return


# Each line was written by `dconf write` and printed by `dconf dump` 0.40.
@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("s", "prefer-dark", "'prefer-dark'"),
        ("s", "it's\n\u200b é", '"it\'s\\n\\u200b é"'),
        ("u", 480, "uint32 480"),
        ("d", 1.1, "1.1000000000000001"),
        ("d", 2.0, "2.0"),
        ("b", True, "true"),
        ("as", [], "@as []"),
        ("a{sv}", [], "@a{sv} {}"),
        ("ay", [1, 2], "[byte 0x01, 0x02]"),
        ("ay", [104, 105, 0], "b'hi'"),
        ("aas", [["a"], [], ["b", "c"]], "[['a'], [], ['b', 'c']]"),
        ("a(usb)", [[4, "x", True], [5, "y", False]], "[(uint32 4, 'x', true), (5, 'y', false)]"),
        ("(ismsmd)", [1, "x", None, {"just": 5.0}], "(1, 'x', @ms nothing, @md 5.0)"),
        ("(ogxn)", ["/a", "s", 5, 3], "(objectpath '/a', signature 's', int64 5, int16 3)"),
        ("av", [{"type": "i", "value": 1}, {"type": "s", "value": "a"}], "[<1>, <'a'>]"),
        ("a{sv}", [["x", {"type": "u", "value": 5}]], "{'x': <uint32 5>}"),
    ],
)  # fmt: skip
def test_values_are_told_as_glib_tells_them(kind, value, text):
    assert as_text(kind, value) == text
