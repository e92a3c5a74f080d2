"""A model that really sees finds marks on screens of all kinds, and the click lands inside them.

The whole way: captured image, resized, encoded, asked of a real vLLM, answer read, mapped to the desktop. The images
are those that this model is good at: of eight drawn for each set-up it hit 86 of 96, and nearly all of the three used
here. So a miss of more than one of three is the program's.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from stubs.coloured_marks import Clicked, Marked, clicks, marked
from stubs.desk import FakeScreen
from stubs.made_up_desktop import MadeUpDesktop

from agent.cli import main
from agent.core.geometry import DesktopPoint, Region, Size
from agent.families.registry import get_family
from agent.model.request import TextPart
from agent.screen.capture import Frame
from agent.screen.encode import as_image, resize

pytestmark = [pytest.mark.slow, pytest.mark.real_vllm, pytest.mark.timeout(600)]

TESTS = Path(__file__).parents[1]
MODEL = TESTS / "models" / "tiny-qwen3-vl"
REFERENCE = TESTS / "stubs" / "transformers_answers.py"
#: --max-pixels where a screen has more than the model can well take: it was trained on a million at most.
LESS = 600_000
IMAGES = (101, 103, 104)
#: Captured size, region of the desktop (None: alone, at scale 1), --max-pixels.
SET_UPS = {
    "a laptop's 1366x768": (Size(1366, 768), None, LESS),
    "1440x900": (Size(1440, 900), None, 800_000),
    "odd sides": (Size(1921, 1083), None, LESS),
    "800x600": (Size(800, 600), None, None),
    "upright": (Size(1024, 1280), None, LESS),
    "scale 1.25": (Size(1000, 700), Region(0, 0, 800, 560), None),
    "scale 1.5": (Size(1200, 900), Region(0, 0, 800, 600), LESS),
    "scale 2": (Size(1280, 800), Region(0, 0, 640, 400), LESS),
    "left of the first monitor": (Size(1280, 720), Region(-1280, 0, 1280, 720), LESS),
    "above the first monitor": (Size(1280, 1024), Region(-160, -1024, 1280, 1024), LESS),
    "left and above, scale 1.5": (Size(960, 720), Region(-640, -480, 640, 480), None),
    "half of the pixels": (Size(1024, 768), None, 400_000),
}


@pytest.fixture(scope="module")
def clicked(tiny_vlm) -> dict[str, list[tuple[Marked, Clicked]]]:
    """Per set-up, what became of its images; all asked together, which takes half the time."""
    screens = [
        (name, marked(size, region, image), most)
        for name, (size, region, most) in SET_UPS.items()
        for image in IMAGES
    ]  # fmt: skip
    found = clicks(tiny_vlm.url, tiny_vlm.name, [(screen, most) for _, screen, most in screens])
    return {
        name: [(screen, one) for (of, screen, _), one in zip(screens, found, strict=True) if of == name]
        for name in SET_UPS
    }


@pytest.mark.parametrize("name", SET_UPS)
def test_clicks_land_inside_the_marks(clicked, name):
    hits = [screen.holds(one.point) for screen, one in clicked[name]]
    assert sum(hits) >= 2, [(screen.ask, screen.mark, one.point, one.answer) for screen, one in clicked[name]]


def test_a_click_on_the_second_monitor_is_no_click_on_the_first(clicked):
    for screen, one in clicked["left and above, scale 1.5"]:
        assert one.point is not None
        assert one.point.x < 0 and one.point.y < 0
        assert screen.frame.viewport.region.contains(one.point)


def test_the_server_counts_the_tokens_of_the_image_as_it_was_sent(tiny_vlm):
    """So it does not resize again: every size is one that its processor keeps."""
    family = get_family("mai-ui")
    sizes = [Size(640, 480), Size(1366, 768), Size(333, 555), Size(1921, 1083), Size(700, 1400)]
    drawn = [marked(size, None, 101) for size in sizes]
    asked = [Marked(screen.frame, "click the red square", screen.mark) for screen in drawn]
    found = clicks(tiny_vlm.url, tiny_vlm.name, [(screen, LESS) for screen in asked])
    texts = {one.prompt_tokens - family.facts.image.tokens(one.sent.width, one.sent.height) for one in found}
    assert len(texts) == 1 and 20 < texts.pop() < 200


def test_the_server_sees_the_image_that_was_sent_and_nothing_else(clicked, vllm_python, tmp_path):
    """Its answers are, number for number, those of transformers to the image as we resized it."""
    family = get_family("mai-ui")
    chosen = [clicked[name][0] for name in ("a laptop's 1366x768", "odd sides", "scale 1.25")]
    requests = []
    for number, (screen, one) in enumerate(chosen):
        file = tmp_path / f"{number}.png"
        as_image(resize(screen.frame.image, one.sent)).save(file)
        messages = [
            {
                "role": message.role,
                "content": [
                    {"type": "text", "text": part.text} if isinstance(part, TextPart) else {"type": "image"}
                    for part in message.parts
                ],
            }
            for message in family.grounding_request(screen.ask, None).messages
        ]
        requests.append({"messages": messages, "image": str(file)})
    done = subprocess.run(
        [vllm_python, REFERENCE, MODEL],
        input=json.dumps(requests), capture_output=True, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    same = [said == one.answer for said, (_, one) in zip(json.loads(done.stdout), chosen, strict=True)]
    assert sum(same) >= 2, done.stdout  # another processor's rounding may tip one number to its neighbour


def test_the_screen_itself_is_looked_at_and_answered_in_its_own_coordinates(tiny_vlm, monkeypatch, capsys):
    """`act --grounding` without a file, on a second monitor left of the first that is scaled."""
    screen = marked(Size(960, 720), Region(-640, -480, 640, 480), 103)

    class Looked(FakeScreen):
        def grab(self) -> Frame:
            return screen.frame

    class Desktop(MadeUpDesktop):
        def __init__(self, *arguments, **named) -> None:
            super().__init__(*arguments)
            self.screen = Looked()

        def shows(self, environ):
            return False  # we run elsewhere: nothing on it is ours

    monkeypatch.setattr("agent.desktop.factory.open_desktop", Desktop)
    assert main(["act", "--grounding", "--json", "--endpoint", tiny_vlm.url, screen.ask]) == 0
    x, y = json.loads(capsys.readouterr().out)["action"]["point"]
    assert screen.holds(DesktopPoint(x, y))
