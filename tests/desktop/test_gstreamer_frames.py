"""The program that hands frames over, played by others: one that complains all the time, and one that cannot begin."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.core.geometry import Size
from agent.desktop.portal import screen
from agent.desktop.portal.screen import GStreamerFrames, NoFramesError

pytestmark = pytest.mark.slow

COMPLAINS = """
import struct, sys
for number, _ in enumerate(sys.stdin):
    sys.stderr.write("GStreamer-WARNING: this again\\n" * 10_000)
    sys.stderr.flush()
    sys.stdout.buffer.write(struct.pack("=III", 2, 1, 8) + bytes([number, 2, 3, 0] * 2))
    sys.stdout.buffer.flush()
"""

Play = Callable[[str], None]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    def program(text: str) -> None:
        (tmp_path / "program.py").write_text(text)
        monkeypatch.setattr(screen, "_PROGRAM", tmp_path / "program.py")
        monkeypatch.setattr(screen, "_PYTHONS", (sys.executable,))

    return program


def test_a_program_that_complains_all_the_time_goes_on_giving_frames(play: Play) -> None:
    play(COMPLAINS)
    opened = GStreamerFrames(0, 1, Size(2, 1))
    try:
        assert [opened.latest().getpixel((1, 0)) for _ in range(3)] == [(3, 2, number) for number in (1, 2, 3)]
    finally:
        opened.close()
    opened.close()


def test_why_no_frame_comes_is_the_last_that_the_program_said(play: Play) -> None:
    play("import sys; sys.exit('noise\\nno such stream')")
    with pytest.raises(NoFramesError, match="GStreamer: no such stream"):
        GStreamerFrames(0, 1, Size(2, 1))
