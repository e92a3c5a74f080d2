"""`mai-agent act --image FILE "INSTRUCTION"`: one screenshot, one decision, printed. Nothing is touched."""

import argparse
import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import Future, wait
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from agent.commands.arguments import add_options
from agent.console.terminal import say, terminal_ask
from agent.core.actions import Action, describe, map_points, points_of
from agent.core.actions import to_json as action_json
from agent.core.geometry import DesktopPoint, Size, Viewport
from agent.families.base import Decision, ParseFailure, PromptRequest
from agent.families.shared.json_calls import as_text
from agent.model.asking import Patience
from agent.model.engines import Engine, choose_engine
from agent.options import RunOptions
from agent.run.budgets import answer_tokens, pixel_budget
from agent.run.calibration.before_run import recalled
from agent.run.models.roles import open_model
from agent.screen.capture import Frame
from agent.screen.encode import encode, fit
from agent.screen.outline import Element, Outline
from agent.screen.pixels import resize
from agent.settings import load_settings
from foundation.command_line import Parser, plain_text
from foundation.errors import EnvironmentLacksError, ExitStatus, UsageError
from foundation.printing import put, put_json
from foundation.stray_output import stray_output_kept

#: The elements are waited for so long, in seconds: on a busy machine, reading a whole screen takes some.
_PATIENCE = 20.0


@stray_output_kept()
def main(argv: Sequence[str]) -> int:
    """Ask once and print the decision; status 1 when the answer cannot be used."""
    parser = Parser(prog="mai-agent act", description="One screenshot, one decision, printed. Nothing is touched.")
    parser.add_argument(
        "instruction", metavar="INSTRUCTION", type=plain_text, help="what to do, or with --grounding what to find"
    )
    parser.add_argument("--image", metavar="FILE", type=Path, help="a screenshot (default: this screen, captured now)")
    parser.add_argument("--grounding", action="store_true", help="ask for a point only")
    parser.add_argument("--monitor", metavar="N", type=int, help="which monitor to capture")
    parser.add_argument("--json", action="store_true", help="print the decision as JSON")
    add_options(parser, "engine")
    given = parser.parse_args(argv)
    from agent.literal.client import literal_engine

    options = RunOptions.of(given, load_settings())
    seen = _Seen(_open(given.image)) if given.image else _capture(given.monitor)
    engine = choose_engine(options.engine, literal_engine, say, ask=terminal_ask())
    if given.grounding and engine.name == "literal":
        engine.close()
        raise EnvironmentLacksError("The literal engine has no grounding mode.", "Name a model with --endpoint.")
    try:
        return asyncio.run(_act(given, options, engine, seen))
    finally:
        engine.close()


async def _act(given: argparse.Namespace, options: RunOptions, engine: Engine, seen: "_Seen") -> int:
    image = seen.frame.image
    async with AsyncExitStack() as opened:
        opening = open_model(engine, options.family, Patience.of(options.patience), opened)
        model = recalled(await opening, Size(*image.size), options.max_pixels)
        family, limits = model.family, model.endpoint.limits
        rule = family.facts.image.capped(pixel_budget(family, limits, options.max_pixels))
        size = fit(rule, Size(*image.size))
        sent = encode(resize(image, size), family.facts.image_format, family.facts.quality)
        if given.grounding:
            request = family.grounding_request(given.instruction, sent)
        else:
            system = options.settings.system_prompt(family.facts.name, options.system_prompt)
            chosen = {"thinking": options.thinking}
            outline = seen.outline() if family.facts.outline else None
            prompt = PromptRequest(
                given.instruction, (sent,), system_prompt=system, options=chosen, outline=outline,
                model=model.endpoint.model or "",
            )  # fmt: skip
            request = family.request(prompt)
        limit = answer_tokens(family, limits.context)
        answer = (await model.client.complete(replace(request, max_tokens=limit))).answer
    result = (family.parse_grounding if given.grounding else family.parse)(answer, (size,))
    _put(result, as_text(answer), seen, as_json=given.json)
    return ExitStatus.DONE if isinstance(result, Decision) else ExitStatus.NOT_DONE


def _put(result: Decision | ParseFailure, text: str, seen: "_Seen", *, as_json: bool) -> None:
    if isinstance(result, ParseFailure):
        error = {"kind": result.kind, "message": result.message}
        if as_json:
            put_json({"ok": False, "raw": text, "error": error})
        else:
            put(f"no decision: {result.message}")
        return
    actions = [map_points(action, seen.frame.viewport.to_desktop) for action in result.actions]
    outline = seen.outline()
    hits = [[] if outline is None else _hit(outline, action) for action in actions]
    if as_json:
        written = [action_json(action) for action in actions]
        elements = [[element.to_json() for element in hit] for hit in hits]
        answer = {"ok": True, "raw": text, "thought": result.thought, "action": written[0], "actions": written}
        answer |= {"elements": elements}
        put_json(answer)
        return
    if result.thought:
        put(f"thought: {' '.join(result.thought.split())}")
    for action, hit in zip(actions, hits, strict=True):
        put(f"decided: {describe(action)}")
        if hit:
            put(f"on: {' → '.join(element.words for element in hit)}")


def _hit(outline: Outline, action: Action[DesktopPoint]) -> list[Element]:
    """The elements that an action would hit, at both ends of a drag."""
    return [element for point in points_of(action) if (element := outline.at(point)) is not None]


@dataclass(frozen=True, slots=True)
class _Seen:
    """The screen, and its elements where they are taken."""

    frame: Frame
    outlining: "Future[Outline] | None" = None

    def outline(self) -> Outline | None:
        """The elements; None where there are none, or they take too long."""
        if self.outlining is None:
            return None
        wait((self.outlining,), _PATIENCE)
        return self.outlining.result() if self.outlining.done() else None


def _open(path: Path) -> Frame:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as image:
            read = image.convert("RGB")
            return Frame(read, Viewport.of_image(Size(*read.size)), 0.0)
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise UsageError(f"{path} is no image that can be read ({error}).", "Name a PNG, JPEG or WebP file.") from error


def _capture(monitor: int | None) -> _Seen:
    """This screen without our own windows; its elements are taken meanwhile."""
    from agent.commands.arguments import open_own_desktop
    from agent.desktop.guard.desktop import GuardedDesktop
    from agent.run.observing.outliner import Outliner
    from agent.safety.stop import StopSwitch
    from agent.screen.ocr import reading_languages

    desktop = GuardedDesktop(open_own_desktop(StopSwitch(), monitor), dry_run=True)
    outliner = Outliner(desktop.open_elements, desktop.open_windows, reading_languages(os.environ)[0])
    try:
        frame = desktop.screen.grab()
        return _Seen(frame, outliner.take(frame))
    finally:
        outliner.close()
        desktop.screen.close()
