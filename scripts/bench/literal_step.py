"""What a step of the literal engine takes from the end of an action to the next decision.

    python scripts/bench/literal_step.py [--size 1920x1080] [--rounds 20]

Starts a sandbox with a settings window, turns from page to page in it, and measures in turns: the screen becoming
still, its picture, its outline (tree and the words that are new) and the engine's answer; and the old way,
which waited as long and then read the whole screen twice. Prints medians, their ratio, and the stages of the new way.
"""

import asyncio
import io
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

from common import Times, desktop, desktop_arguments

from agent.desktop.factory import open_desktop
from agent.desktop.protocol.desktop import Desktop
from agent.families.base import Decision, PromptRequest
from agent.families.registry import get_family
from agent.literal.client import literal_engine
from agent.model.endpoint import EngineChoice
from agent.run.observing.observe import Observation, Observer
from agent.run.observing.outliner import Outliner
from agent.safety.stop import StopSwitch
from agent.screen.ocr import Ocr, relief
from agent.screen.settle import SettleRule
from agent.screen.words import merge

TASK = "click Fonts"
NEW, OLD = "tree and new words", "whole screen twice"


def main() -> None:
    options = desktop_arguments(__doc__).parse_args()
    with desktop(["xfce4-appearance-settings"], size=options.size) as environ:
        asyncio.run(measure(open_desktop(StopSwitch(), None, environ), environ, options.rounds))


async def measure(real: Desktop, environ: dict[str, str], rounds: int) -> None:
    family = get_family("literal")
    screen, rule = real.screen, family.facts.image
    eye = Observer(screen, rule, "png", 90, Outliner(real.open_elements, real.open_windows))
    plain, engine = Observer(screen, rule, "png", 90), literal_engine(EngineChoice("literal"))
    looks = Ocr("The bench"), Ocr("The bench")
    client = engine.client
    times, stages = Times(), Times()

    async def new() -> None:
        settled = eye.watch(SettleRule(), lambda: False)
        stages.taken["settle"].append(settled.seconds * 1000)
        seen = eye.observe(settled)
        for name, took in seen.milliseconds.items():
            stages.taken[name].append(took)
        with stages.of("answer"):
            await answer(seen)

    async def answer(seen: Observation) -> None:
        request = family.request(PromptRequest(TASK, seen.images, outline=seen.outline))
        completion = await client.complete(request, lambda _: None)
        assert isinstance(family.parse(completion.answer, (seen.images[0].size,)), Decision)

    async def old() -> None:
        from PIL import Image

        seen = plain.observe(plain.watch(SettleRule(), lambda: False))
        image = Image.open(io.BytesIO(seen.images[0].data)).convert("RGB")
        with ThreadPoolExecutor(2) as pool:
            read = pool.map(lambda ocr, picture: ocr.words(picture), looks, (image, relief(image)))
            merge(word for words in read for word in words)

    ways = {NEW: new, OLD: old}
    for number in range(rounds + 1):
        for name, way in ways.items():
            subprocess.run(["xdotool", "key", "ctrl+Next"], env=environ, check=True)
            with times.of(name):
                await way()
            if not number:  # tesseract is loaded, and everything is read once
                times.taken.pop(name)
                stages.taken.clear()
    print(f"screen {screen.grab().viewport.region.size}, {rounds} rounds, {os.cpu_count()} cores; medians")
    for name in ways:
        print(
            f"{name:20} {times.median(name):7.0f} ms   {times.ratio(OLD, name):5.1f} x   worst {times.worst(name):.0f}"
        )
    told = {name: f"{stages.median(name):.0f}" for name in stages.taken}
    print(f"stages of the new way, ms: {told}")
    await client.aclose()
    eye.close()


if __name__ == "__main__":
    main()
