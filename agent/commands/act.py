"""`mai-agent act --image FILE "INSTRUCTION"`: one screenshot, one decision, printed. Nothing is touched."""

import argparse
import asyncio
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent.actions import describe, map_points
from agent.actions import to_json as action_json
from agent.commands.arguments import add_engine
from agent.console.terminal import say, terminal_ask
from agent.families.base import Decision, ParseFailure, PromptRequest
from agent.families.syntaxes.tool_calls import as_text
from agent.geometry import Size, Viewport
from agent.model.choose import choose_engine
from agent.model.client import Patience
from agent.model.engine import Engine
from agent.options import RunOptions
from agent.run.budgets import answer_tokens, pixel_budget
from agent.run.roles import open_model
from agent.screen.encode import encode
from agent.screen.fit import fit, resize
from agent.settings import load_settings
from foundation.arguments import Parser
from foundation.errors import EnvironmentLacksError, ExitStatus, UsageError

if TYPE_CHECKING:
    from PIL.Image import Image


def main(argv: Sequence[str]) -> int:
    """Ask once and print the decision; status 1 when the answer cannot be used."""
    parser = Parser(prog="mai-agent act", description="One screenshot, one decision, printed. Nothing is touched.")
    parser.add_argument("instruction", metavar="INSTRUCTION", help="what to do, or with --grounding what to find")
    parser.add_argument("--image", metavar="FILE", type=Path, help="a screenshot (default: this screen, captured now)")
    parser.add_argument("--grounding", action="store_true", help="ask for a point only")
    parser.add_argument("--monitor", metavar="N", type=int, help="which monitor to capture")
    parser.add_argument("--json", action="store_true", help="print the decision as JSON")
    add_engine(parser)
    given = parser.parse_args(argv)
    from agent.literal.server import literal_engine

    options = RunOptions.of(given, load_settings())
    image = _open(given.image) if given.image else _capture(given.monitor)
    engine = choose_engine(options.engine, literal_engine, say, ask=terminal_ask())
    if given.grounding and engine.name == "literal":
        engine.close()
        raise EnvironmentLacksError("The literal engine has no grounding mode.", "Name a model with --endpoint.")
    try:
        return asyncio.run(_act(given, options, engine, image))
    finally:
        engine.close()


async def _act(given: argparse.Namespace, options: RunOptions, engine: Engine, image: "Image") -> int:
    async with AsyncExitStack() as opened:
        model = await open_model(engine, options.family, Patience.of(options.patience), opened)
        family, limits = model.family, model.endpoint.limits
        rule = family.facts.image.capped(pixel_budget(family, limits, options.max_pixels))
        size = fit(rule, Size(*image.size))
        sent = encode(resize(image, size), family.facts.image_format, family.facts.quality)
        if given.grounding:
            request = family.grounding_request(given.instruction, sent)
        else:
            system = options.settings.system_prompt(family.facts.name, options.system_prompt)
            chosen = {"thinking": options.thinking}
            request = family.request(PromptRequest(given.instruction, (sent,), system_prompt=system, options=chosen))
        limit = answer_tokens(family, limits.context)
        answer = (await model.client.complete(replace(request, max_tokens=limit))).answer
    result = (family.parse_grounding if given.grounding else family.parse)(answer, (size,))
    _print(result, as_text(answer), Size(*image.size), as_json=given.json)
    return ExitStatus.DONE if isinstance(result, Decision) else ExitStatus.NOT_DONE


def _print(result: Decision | ParseFailure, text: str, screen: Size, *, as_json: bool) -> None:
    if isinstance(result, ParseFailure):
        error = {"kind": result.kind, "message": result.message}
        print(json.dumps({"ok": False, "raw": text, "error": error}) if as_json else f"no decision: {result.message}")
        return
    actions = [map_points(action, Viewport.of_image(screen).to_desktop) for action in result.actions]
    if as_json:
        written = [action_json(action) for action in actions]
        answer = {"ok": True, "raw": text, "thought": result.thought, "action": written[0], "actions": written}
        print(json.dumps(answer))
        return
    if result.thought:
        print(f"thought: {' '.join(result.thought.split())}")
    for action in actions:
        print(f"decided: {describe(action)}")


def _open(path: Path) -> "Image":
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as image:
            return image.convert("RGB")
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise UsageError(f"{path} is no image that can be read ({error}).", "Name a PNG, JPEG or WebP file.") from error


def _capture(monitor: int | None) -> "Image":
    from agent.desktop.factory import open_desktop
    from agent.safety.stop import StopSwitch

    screen = open_desktop(StopSwitch(), monitor).screen
    try:
        return screen.grab().image
    finally:
        screen.close()
