"""Whether the terminal draws kitty's images as text, asked through a real pseudo-terminal."""

import os
import threading

import pytest

from agent.tui.pictures import placeholders


def answered(monkeypatch: pytest.MonkeyPatch, answer: bytes) -> bool:
    """What is concluded from a terminal that answers so."""
    terminal, theirs = os.openpty()
    asked: list[bytes] = []

    def be_asked() -> None:
        asked.append(os.read(terminal, 1000))
        os.write(terminal, answer)

    person = threading.Thread(target=be_asked, daemon=True)
    person.start()
    with os.fdopen(theirs, "r+b", buffering=0) as raw, os.fdopen(os.dup(theirs), "w") as out:
        monkeypatch.setattr("sys.__stdin__", type("Input", (), {"buffer": raw}))
        monkeypatch.setattr("sys.__stdout__", out)
        drawn = placeholders.drawn_here()
        person.join(5)
    os.close(terminal)
    assert b"a=q" in asked[0] and b"U=1" in asked[0]  # asked about, not drawn
    return drawn


def test_images_as_text_are_drawn_where_the_terminal_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answered(monkeypatch, b"\x1b_Gi=31;OK\x1b\\")


@pytest.mark.parametrize("answer", [b"", b"\x1b_Gi=31;EINVAL:unknown key\x1b\\", b"\x1b[?62c", b"y"])
def test_a_terminal_that_stays_silent_or_complains_gets_characters(
    monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    """kitty before 0.28 takes the key for a mistake; its images would be boxes."""
    monkeypatch.setattr(placeholders, "_PATIENCE", 0.05)
    assert not answered(monkeypatch, answer)
