"""`mai-agent calibrate`: measures where a model clicks for marks in known places, and reports how a run responds."""

import argparse
import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

from agent.commands.arguments import add_options, chosen_engine, open_own_desktop, size, tell
from agent.core.geometry import Size
from agent.model.asking import Patience
from agent.model.engines import Engine
from agent.options import RunOptions
from agent.run.calibration.remembered import Case, forget, settled
from agent.run.calibration.trial import Asked, Outcome, try_out
from agent.run.models.roles import open_model
from agent.safety.stop import StopSwitch
from agent.settings import load_settings
from foundation.command_line import Parser
from foundation.errors import ExitStatus, MaiError, UsageError
from foundation.printing import put, remark
from foundation.stray_output import stray_output_kept


@stray_output_kept()
def main(argv: Sequence[str]) -> int:
    """Measure, print and store the calibration; status 3 if the model's points cannot be used."""
    parser = Parser(
        prog="mai-agent calibrate",
        description="Finds out where a model clicks: marks in known places are asked for. Runs do it by themselves, "
        "once for each model, endpoint and size of screen, and remember it.",
    )
    parser.add_argument("--monitor", metavar="N", type=int, help="for which monitor (default: the primary one)")
    parser.add_argument("--size", metavar="WxH", type=size, help="for a screen of this size in pixels, not this one's")
    parser.add_argument("--picture", metavar="FILE", type=Path, help="write the marks, and where it clicked, as a PNG")
    parser.add_argument("--forget", action="store_true", help="forget what is known of the model (on --size)")
    parser.add_argument("--json", action="store_true", help="print what was found out as JSON")
    add_options(parser, "engine")
    arguments = parser.parse_args(argv)
    options = RunOptions.of(arguments, load_settings())
    engine = chosen_engine(options, ("The literal engine has no model.", "Name one with --endpoint."))
    return asyncio.run(_calibrate(arguments, options, engine))


async def _calibrate(arguments: argparse.Namespace, options: RunOptions, engine: Engine) -> int:
    async with AsyncExitStack() as opened:
        model = await open_model(engine, options.family, Patience.of(options.patience), opened)
        family = model.family
        if not family.grounds:
            raise UsageError(f"The family {family.facts.name} cannot be asked for a point.", "Choose another --family.")
        if arguments.forget:
            name, address = model.endpoint.model or "", model.endpoint.base_url
            about = f"{name} at {address}" + (f" on {arguments.size}" if arguments.size else "")
            forgotten = forget(address, name, arguments.size)
            words = f"Forgotten: {about}." if forgotten else f"Nothing is remembered of {about}."
            tell(arguments.json, {"ok": True, "forgotten": forgotten}, words)
            return ExitStatus.DONE
        screen = arguments.size or _captured(arguments.monitor)
        case = Case.of(model, screen, options.max_pixels)
        outcome = await try_out(model, screen, options.max_pixels, remark)
    tell(arguments.json, _as_json(case, outcome), *map(_line, outcome.asked, outcome.distances()))
    try:
        correction = settled(case, outcome, arguments.picture)
    except MaiError as error:
        if not arguments.json:
            raise
        remark(str(error))
        return error.exit_status
    if not arguments.json:
        put(correction.words)
    return ExitStatus.DONE


def _captured(monitor: int | None) -> Size:
    with closing(open_own_desktop(StopSwitch(), monitor).screen) as screen:
        return screen.grab().viewport.captured


def _line(one: Asked, distance: float | None) -> str:
    if one.written is None or distance is None:
        return f"{one.mark.words}: no point ({one.lack})"
    return f"{one.mark.words}: {distance:.0f} pixels off (it wrote {one.written[0]:g}, {one.written[1]:g})"


def _as_json(case: Case, outcome: Outcome) -> dict[str, Any]:
    correction, grid = outcome.correction, outcome.grid
    clicks = outcome.clicks()
    return {
        "ok": correction is not None,
        "verdict": "refused" if correction is None else correction.verdict,
        "words": outcome.refusal if correction is None else correction.words,
        "endpoint": case.endpoint,
        "model": case.model,
        "family": case.family,
        "screen": [case.screen.width, case.screen.height],
        "sent": [outcome.sizes.sent.width, outcome.sizes.sent.height],
        "grid": [grid.width, grid.height, grid.left, grid.top],
        "max_pixels": None if correction is None else correction.max_pixels,
        "marks": [
            {
                "mark": one.mark.words,
                "at": [at.x, at.y],
                "written": None if one.written is None else list(one.written),
                "clicked": None if clicked is None else [clicked.x, clicked.y],
                "off": distance,
                "lack": one.lack or None,
            }
            for one, (_, clicked), distance in zip(outcome.asked, clicks, outcome.distances(), strict=True)
            for at in (one.mark.on(case.screen),)
        ],
    }
