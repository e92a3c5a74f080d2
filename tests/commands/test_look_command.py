"""What `mai-agent look` prints and draws; looking itself is tried on real desktops."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from agent.commands.look import table
from agent.core.geometry import Region, Size, Viewport
from agent.sandbox.desktop import Sandbox
from agent.screen.drawing import draw_marks
from agent.screen.outline import Element, Outline


def outline(*elements: Element, lacks: str = "") -> Outline:
    return Outline(Size(200, 100), elements, (), lacks)


def test_the_table_stands_under_the_windows_and_tells_states_and_values() -> None:
    box = Element(
        1, "check box", "Agree", Region(10, 20, 30, 40), states=frozenset({"checked"}), window="Form", app="F"
    )
    field = Element(
        2, "entry", "Name", Region(1, 2, 3, 4), value="Ada\nLovelace", window="Form", app="F", trusted=False
    )
    lines = list(table(outline(box, field)))
    assert lines[0] == "Form  (F)"
    assert lines[1].split() == ["1", "check", "box", "Agree", "10,20", "30x40", "checked"]
    assert lines[2].endswith("= Ada Lovelace, not trusted")


def test_names_of_strangers_cannot_steer_the_terminal() -> None:
    lines = list(
        table(outline(Element(1, "label", "\x1b[2J\u202egone", Region(0, 0, 1, 1), window="\x07"), lacks="\x1b]"))
    )
    assert all(line.isprintable() for line in lines)
    assert lines[-1].startswith("note: ")


def test_marks_are_drawn_at_the_scale_of_the_picture_and_off_it_not_at_all() -> None:
    image = Image.new("RGB", (400, 200), "white")
    viewport = Viewport(Region(0, 0, 200, 100), Size(400, 200))
    inside = Element(1, "push button", "OK", Region(100, 40, 50, 30))
    hidden = Element(2, "list item", "Row", Region(10, 40, 50, 30), states=frozenset({"offscreen"}))
    beside = Element(3, "push button", "Far", Region(900, 40, 50, 30))
    marked = draw_marks(image, [inside, hidden, beside], viewport)
    assert marked.getpixel((299, 139)) != (255, 255, 255)  # its right lower corner
    assert marked.getpixel((20, 139)) == (255, 255, 255)
    assert image.getpixel((299, 139)) == (255, 255, 255)


@pytest.mark.e2e
def test_it_looks_at_the_display_it_is_started_on(sandbox: Sandbox, tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    picture = tmp_path / "marked.png"
    done = subprocess.run(
        [sys.executable, "-m", "agent", "look", "--json", "--tree", "--picture", str(picture)],
        env=sandbox.environ | {"PYTHONPATH": str(root)}, cwd=root, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["size"] == [1920, 1080]
    assert "Applications" in {element["name"] for element in told["elements"]}
    assert Image.open(picture).size == (1920, 1080)
