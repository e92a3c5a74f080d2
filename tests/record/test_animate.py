"""The animated run: one frame a step, its target marked, its words below it."""

from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from record.bundles import CLICK, a_bundle, a_step, plain

from agent.record.animate import write_animation
from agent.record.redactor import Redactor, Rules
from foundation.errors import UsageError


def frames(path: Path) -> list[tuple[Image.Image, int]]:
    found = []
    with Image.open(path) as animation:
        for number in range(getattr(animation, "n_frames", 1)):
            animation.seek(number)
            animation.load()
            found.append((animation.convert("RGB"), int(animation.info["duration"])))
    return found


def reddish(image: Image.Image, x: int, y: int) -> bool:
    red, green, blue = image.getpixel((x, y))  # type: ignore[misc]
    return red > 150 and green < 110 and blue < 140


def test_every_step_is_a_frame_of_a_second_and_the_last_stays_longer(tmp_path: Path) -> None:
    bundle = a_bundle(tmp_path / "run", [a_step(number) for number in range(1, 5)])
    made = write_animation(bundle, tmp_path / "run.webp")
    assert made.frames == 4
    assert made.bytes == (tmp_path / "run.webp").stat().st_size
    assert [milliseconds for _, milliseconds in frames(made.path)] == [1000, 1000, 1000, 3000]


def test_the_target_is_marked_and_the_words_stand_below_the_picture(tmp_path: Path) -> None:
    step = a_step(
        1, viewport=a_step(1)["viewport"] | {"width": 800, "height": 450}, target=CLICK | {"point": [400, 225]}
    )
    bundle = a_bundle(tmp_path / "run", [step], [Image.new("RGB", (800, 450), "white")])
    [(image, _)] = frames(write_animation(bundle, tmp_path / "run.webp").path)
    assert image.height > 450
    assert reddish(image, 400 + 13, 225)
    assert not reddish(image, 400, 225)
    assert max(image.crop((0, 450, 800, image.height)).convert("L").tobytes()) > 150  # words on dark ground


def test_steps_without_a_screenshot_and_of_another_size_are_no_trouble(tmp_path: Path) -> None:
    images = [plain(1), plain(2, 90, 160), plain(3)]
    bundle = a_bundle(tmp_path / "run", [a_step(number) for number in range(1, 6)], images)
    (bundle.path / "screens/0003.png").write_bytes(b"no picture")
    assert len(frames(write_animation(bundle, tmp_path / "run.webp").path)) == 2


def test_a_run_without_screenshots_cannot_be_animated_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no screenshot"):
        write_animation(a_bundle(tmp_path / "run", [a_step(1)], []), tmp_path / "run.webp")


def test_a_long_run_is_thinned_out_and_keeps_its_end(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("agent.record.animate._MOST_FRAMES", 10)
    bundle = a_bundle(tmp_path / "run", [a_step(number) for number in range(1, 26)])
    found = frames(write_animation(bundle, tmp_path / "run.webp").path)
    assert len(found) <= 11
    assert found[-1][0].getpixel((150, 80)) == pytest.approx(plain(25).getpixel((0, 0)), abs=12)


@pytest.mark.parametrize("text", ["", "漢字 " * 400, "a\nb\x1b[31m", "\ud800", "\u202ertl"])
def test_any_words_can_stand_below_a_picture(tmp_path: Path, text: str) -> None:
    bundle = a_bundle(tmp_path / "run", [a_step(1, thought=text)], instruction=text)
    assert write_animation(bundle, tmp_path / "run.webp", Redactor(Rules(), ["x"])).frames == 1
