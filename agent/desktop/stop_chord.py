"""The chord of keys that stops a run wherever the focus is, as a person writes it."""

from foundation.errors import UsageError

#: Free in XFCE, GNOME and KDE, which use ctrl+alt+escape, ctrl+shift+escape and super+escape themselves.
DEFAULT_CHORD = "ctrl+alt+shift+escape"
_MODIFIERS = frozenset({"shift", "ctrl", "alt", "super"})


def parse_chord(chord: str) -> tuple[list[str], str]:
    """Modifiers and key of a chord; no key for none. Raises UsageError."""
    if chord.strip().lower() in ("", "none"):
        return [], ""
    *modifiers, key = [part.strip().lower() for part in chord.split("+")]
    if not modifiers or not key or not _MODIFIERS.issuperset(modifiers) or key in _MODIFIERS:
        raise UsageError(
            f"The stop key cannot be {chord!r}.", "Write it like ctrl+alt+shift+escape, or none for no stop key."
        )
    return modifiers, key
