"""Words that say which of several things is meant."""

_FIRST_TO_LAST = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
#: The position that a word names, counted from 1, or from the end: -1 is the last.
ORDINALS = {word: at for at, word in enumerate(_FIRST_TO_LAST, 1)} | {
    **{"last": -1, "final": -1, "second last": -2, "second to last": -2, "penultimate": -2},
}


def ordinal_word(position: int) -> str:
    """The usual word for a position: "second", "12th"."""
    return next((word for word, at in ORDINALS.items() if at == position), f"{position}th")
