"""What a step costs by itself: capture, fit, encode, prompt, parse, map; no model, no waiting.

    python scripts/bench/step.py [--size 1920x1080] [--rounds 40] [--photograph]

Starts a sandbox of its own with a window to look at (or takes the display of DISPLAY with --this-display), before a
plain background or something like a photograph, which no PNG makes small. Measures our
path with PNG and with JPEG, with the outline taken beside it as while a model thinks, and the naive one (open the
capture, go through .rgb, full-size PNG level 6, base64), in turns, and prints medians and ratios. The request holds six
screenshots.
"""

import base64
import io
import os
import statistics
import time
from pathlib import Path

from common import Times, desktop, desktop_arguments

from agent.core.actions import map_points
from agent.core.geometry import Size
from agent.desktop.factory import open_desktop
from agent.desktop.portable import MssScreen
from agent.desktop.programs import run_inside
from agent.families.base import Call, Decision, Family, PastStep, PromptRequest
from agent.families.registry import get_family
from agent.model.request import to_openai
from agent.run.observing.observe import Observer
from agent.run.observing.outliner import Outliner
from agent.safety.stop import StopSwitch
from foundation.chat_stream import Answer

ANSWER = (
    "<thinking>\nThe settings window is open; the next step is to click Appearance.\n</thinking>\n<tool_call>\n"
    '{"name":"mobile_use","arguments":{"action":"click","coordinate":[387,355]}}\n</tool_call>'
)


def main() -> None:
    parser = desktop_arguments(__doc__)
    parser.add_argument("--photograph", action="store_true", help="before a background like a photograph")
    parser.add_argument("--this-display", action="store_true", help="measure on the display of DISPLAY")
    options = parser.parse_args()
    if options.this_display:
        measure(options.rounds)
        return
    with desktop(["xfce4-settings-manager"], size=options.size) as environ:
        if options.photograph:
            show_photograph(environ, options.size)
        measure(options.rounds)


def show_photograph(environ: dict[str, str], size: Size) -> None:
    """Put a made-up photograph behind the windows: as rough at every scale as a natural scene, and a sensor's noise."""
    import numpy as np
    from PIL import Image

    chance = np.random.default_rng(7)
    across, down = np.meshgrid(np.fft.fftfreq(size.width), np.fft.fftfreq(size.height))
    fall = 1 / np.maximum(np.hypot(across, down), 1 / size.width) ** 1.2
    scenes = [np.fft.ifft2(fall * np.exp(2j * np.pi * chance.random(fall.shape))).real for _ in range(3)]
    scene = np.stack([128 + 48 * one / one.std() for one in scenes], 2) + chance.normal(0, 2, (*fall.shape, 3))
    file = Path(environ["HOME"]) / "photograph.jpg"
    Image.fromarray(scene.clip(0, 255).astype(np.uint8)).save(file, quality=92)
    place = "/backdrop/screen0/monitorscreen/workspace0"
    for name, kind, value in (("last-image", "string", str(file)), ("image-style", "int", "5")):
        set_it = ["xfconf-query", "-c", "xfce4-desktop", "-p", f"{place}/{name}", "-n", "-t", kind, "-s", value]
        run_inside(set_it, environ, 10).check_returncode()
    time.sleep(2)


def measure(rounds: int) -> None:
    family = get_family("mai-ui")
    screen = MssScreen()
    rule = family.facts.image.capped(2_097_152)
    png, jpeg = (Observer(screen, rule, image_format, 90) for image_format in ("png", "jpeg"))
    desktop = open_desktop(StopSwitch())
    outliner = Outliner(desktop.open_elements, desktop.open_windows, read_words=False)
    beside = Observer(screen, rule, "png", 90, outliner, waits=False)
    paths = {
        "ours, PNG": lambda: ours(png, family),
        "ours, JPEG": lambda: ours(jpeg, family),
        "outline, PNG": lambda: ours(beside, family),
        "naive": naive,
    }
    times = Times()
    sizes = {name: path() for name, path in paths.items()}  # warm up
    for _ in range(rounds):
        for name, path in paths.items():
            with times.of(name):
                sizes[name] = path()
            outliner.take(screen.grab()).result()  # what was begun is over when a model has answered
    print(f"screen {screen.grab().viewport.region.size}, {rounds} rounds, {os.cpu_count()} cores; medians")
    for name, size in sizes.items():
        ratio = times.ratio("naive", name)
        print(f"{name:12} {times.median(name):7.1f} ms   {ratio:5.1f} x   image {size / 1024:7.0f} KiB")
    looks = [png.look().milliseconds for _ in range(rounds)]
    stages = {name: f"{statistics.median(look[name] for look in looks):.1f}" for name in looks[0]}
    print(f"stages of the PNG path, ms: {stages}")
    outliner.close()
    screen.close()


def ours(eye: Observer, family: Family) -> int:
    seen = eye.look()
    call = Call("mobile_use", {"action": "wait"})
    past = [PastStep("Looking.", (call,), (seen.images[0],), shown=True) for _ in range(5)]
    request = PromptRequest("open settings and enable dark mode", (seen.images[0],), past)
    urls = {seen.images[0].digest: seen.images[0].data_url}  # as the client keeps them: encoded once
    messages = to_openai(family.request(request).messages, lambda image: {"url": urls[image.digest]})
    decision = family.parse(Answer(ANSWER), (seen.images[0].size,))
    assert isinstance(decision, Decision)
    map_points(decision.actions[0], seen.viewport.to_desktop)
    assert len(messages) == 13
    return len(seen.images[0].data)


def naive() -> int:
    import mss
    from PIL import Image

    with mss.MSS() as capture:
        shot = capture.grab(capture.monitors[1])
        image = Image.frombytes("RGB", shot.size, shot.rgb)
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", compress_level=6)
    base64.b64encode(buffer.getvalue()).decode()
    return len(buffer.getvalue())


if __name__ == "__main__":
    main()
