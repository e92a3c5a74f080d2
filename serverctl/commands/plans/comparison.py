"""`mai-server plan --compare`: the same plan request on several cards, side by side."""

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foundation.configs import load_config
from foundation.errors import EnvironmentLacksError, UsageError
from foundation.files import read_json_object
from serverctl.commands.options import cards_here, parse_screen, processor_alone, resolve_options
from serverctl.config import load_server_config
from serverctl.hardware.catalogue import cards, imagine, plain_name, plain_names
from serverctl.hardware.facts import Hardware
from serverctl.plan.goal import Plan
from serverctl.plan.show import limits_json
from serverctl.plan.speed import Range, Speed, measured_speed, speed_of
from serverctl.planning import load_presets, speed_table

if TYPE_CHECKING:
    from rich.console import Console

HOW_TO_NAME = "Cards are T4, 2xL4 (two of them), NAME:MEMORY:CAPABILITY:BANDWIDTH (RTX 6090:47.3:13.0:2200), here, cpu."


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of the comparison."""

    named: str  # as on the command line
    card: str  # the card's name in it
    count: int  # how many of them
    hardware: Hardware


@dataclass(frozen=True, slots=True)
class Row:
    """The plan and speed of one machine with one model and preset."""

    machine: Machine
    model: str  # as named; "" if the planner chose it
    preset: str
    plan: Plan | None  # None if nothing fits
    refusal: str  # why nothing fits
    speed: Speed | None
    price: float | None  # an hour of one card, in the person's own currency

    @property
    def price_of_all(self) -> float | None:
        """The price of an hour of the whole machine, idle cards included."""
        return None if self.price is None else self.price * self.machine.count

    @property
    def costs(self) -> tuple[Range | None, Range | None]:
        """Return the cost of a thousand steps with one agent alone, and with all servers full."""
        price, speed = self.price_of_all, self.speed
        if price is None or speed is None:
            return None, None
        full = speed.steps_per_hour and speed.steps_per_hour.per(price * 1000)
        return speed.step_s and speed.step_s.times(price * 1000 / 3600), full


def add_comparison(parser: argparse.ArgumentParser) -> None:
    """Add the options of a comparison."""
    group = parser.add_argument_group(
        "comparing (--model and --preset may then name several, with commas)"
    ).add_argument
    group("--compare", metavar="CARDS", help=f"plan for each of these, with commas. {HOW_TO_NAME}")
    group(
        "--price", action="append", default=[], metavar="CARD=X", help="an hour of one card (repeat it); or in "
            "[server.prices] of config.toml",
    )  # fmt: skip
    group(
        "--measured", action="append", default=[], metavar="CARD=FILE",
        help="what `mai-server bench --out FILE` measured on that card, instead of an estimate (repeat it)",
    )  # fmt: skip


def compare(options: argparse.Namespace, flags: list[str]) -> list[Row]:
    """Plan for each card, model and preset. Raises UsageError."""
    if options.gpu is not None or options.gpus is not None or options.gpu_memory is not None:
        raise UsageError("--gpu describes one machine, and --compare names several.", HOW_TO_NAME)
    if options.beside:
        raise UsageError("--compare plans for one model at a time.", "Leave out --beside, or --compare.")
    own_prices = {name: _price(value) for name, value in _pairs(options.price, "--price", "0.70")}
    prices = {**load_server_config().prices, **own_prices}
    own_measured = [*_measured(options.measured)]
    measured = [*load_config("gpus/measured.toml")["measured"], *own_measured]
    machines = [machine_of(text.strip()) for text in options.compare.split(",")]
    table = speed_table()
    screen = parse_screen(options.screen) if options.screen else (1920, 1080)
    models: list[str | None] = [*_listed("--model", options.model)] if options.model else [None]
    presets = _listed("--preset", options.preset or load_presets().default)
    for name in [*own_prices, *(entry["card"] for entry in own_measured)]:
        if not any(_is_card(machine.card, name) for machine in machines):
            raise UsageError(f"{name!r} is none of the cards that are compared.", f"They are {options.compare}.")
    rows = []
    for machine, model, preset in product(machines, models, presets):
        wish = argparse.Namespace(**{**vars(options), "model": model, "preset": preset})
        price = next((price for name, price in prices.items() if _is_card(machine.card, name)), None)
        try:
            plan = resolve_options(wish, flags, machine.hardware).plan()
        except EnvironmentLacksError as error:
            rows.append(Row(machine, model or "", preset, None, error.what, None, price))
            continue
        speed = _with_measured(speed_of(plan, table, screen), plan, machine, measured)
        rows.append(Row(machine, plan.model.name, preset, plan, "", speed, price))
    return rows


def _listed(option: str, text: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    if not all(names):
        raise UsageError(f"{option} {text!r} has an empty name.", "Write names with commas between.")
    return names


def machine_of(text: str) -> Machine:
    """Read the name of one machine. Raises UsageError."""
    found = re.fullmatch(r"(?:(\d{1,2})x)?\s*([^:]+)(?::([\d.]+):(\d{1,2})\.(\d)(?::([\d.]+))?)?", text)
    if found is None:
        raise UsageError(f"{text!r} names no card.", HOW_TO_NAME)
    count, name = int(found[1] or 1), found[2].strip()
    if name == "here":
        here = cards_here(None)
        return Machine(text, here.gpus[0].name if here.gpus else "cpu", max(1, len(here.gpus)), here)
    if plain_name(name) in ("cpu", "none"):
        return Machine(text, "cpu", 1, processor_alone())
    specs: dict[str, Any] = {}
    if found[3]:
        specs = {"memory_gib": _number(found[3]), "compute_capability": (int(found[4]), int(found[5]))}
        specs |= {"bandwidth_gb_s": _number(found[6])} if found[6] else {}
    hardware = imagine(name, count, specs)
    return Machine(text, name if specs else hardware.gpus[0].name, len(hardware.gpus), hardware)


def _number(text: str) -> float:
    with suppress(ValueError):
        if 0 < (number := float(text)) <= 100_000:
            return number
    raise UsageError(f"{text!r} is no size.", HOW_TO_NAME)


def _is_card(card: str, name: str) -> bool:
    wanted = plain_name(name)
    return wanted == plain_name(card) or any(
        wanted in names and plain_name(card) in names for names in map(plain_names, cards())
    )


def _pairs(texts: Sequence[str], option: str, example: str) -> Iterator[tuple[str, str]]:
    for text in texts:
        name, _, value = (part.strip() for part in text.partition("="))
        if not name or not value:
            raise UsageError(f"{option} {text!r} is not CARD=VALUE.", f"For example {option} L4={example}.")
        yield name, value


def _price(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (price := float(text)) < 100_000:
            return price
    raise UsageError(f"{text!r} is no price of an hour.", "For example --price L4=0.70.")


def _measured(texts: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """Read the reports of benches.

    Of each report, use the settings with cold caches that have the fewest and the most requests at once.
    """
    for card, file in _pairs(texts, "--measured", "l4.json"):
        if not Path(file).expanduser().is_file():
            raise UsageError(f"There is no file {file}.", "`mai-server bench --out FILE` makes one.")
        document = read_json_object(Path(file).expanduser())
        reports = document.get("reports") or [document]
        try:
            entries = [_of_report(card, file, report) for report in reports]
        except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError):
            raise UsageError(
                f"{file} holds no result of a bench.", "`mai-server bench --out FILE` makes one."
            ) from None
        yield from entries


def _of_report(card: str, file: str, report: Mapping[str, Any]) -> Mapping[str, Any]:
    settings = [each for each in report["measurements"] if each["answered"]]
    if not settings:
        raise ValueError("nothing was answered")
    cold = [each for each in settings if each["setting"]["cache"] == "cold"] or settings
    alone = min(cold, key=lambda each: int(each["setting"]["concurrency"]))
    most = max(cold, key=lambda each: int(each["setting"]["concurrency"]))
    several = most["setting"]["concurrency"] > 1
    return {
        "card": card,
        "model": str(report["model"]),
        "preset": report.get("name") if report.get("name") in load_presets().by_name else None,
        "tokens_per_s": 1000 / alone["tpot_ms"]["mean"] if alone["tpot_ms"] else None,
        "prompt_s": alone["ttft_ms"]["mean"] / 1000 if alone["ttft_ms"] else None,
        "all_tokens_per_s": most["output_tokens_per_s"] if several else None,
        "steps_per_hour": most["requests_per_s"] * 3600 if several and most["requests_per_s"] else None,
        "source": file,
    }


def _with_measured(speed: Speed, plan: Plan, machine: Machine, measured: Sequence[Mapping[str, Any]]) -> Speed:
    """Return the latest measurement of this model and preset on this single card, or else the estimate.

    A measurement with a stated precision counts only for that precision, without speculation and 8-bit KV cache.
    """
    plain = plan.settings.spec_method is None and plan.settings.kv_cache_dtype is None
    precisions = (None, plan.computed) if plain else (None,)
    for entry in reversed(measured if machine.count == 1 else ()):
        alike = entry["model"].rsplit("/", 1)[-1].casefold() == plan.model.name.casefold()
        alike = alike and entry.get("precision") in precisions
        if alike and entry.get("preset") in (None, plan.preset) and _is_card(machine.card, entry["card"]):
            return measured_speed(speed, entry)
    return speed


def row_json(row: Row) -> dict[str, Any]:
    """A row of the comparison as JSON values; ranges have "low" and "high", null is unknown."""
    plan, speed = row.plan, row.speed
    document: dict[str, Any] = {
        "cards": row.machine.named, "card": row.machine.card, "count": row.machine.count, "model": row.model,
        "preset": row.preset, "fits": plan is not None, "refusal": row.refusal or None,
    }  # fmt: skip
    if plan is None or speed is None:
        return document
    return document | {
        "precision": plan.computed,
        "servers": len(plan.replicas),
        "cards_a_server": len(plan.gpus),
        "limits": limits_json(plan),
        "kv_tokens": plan.budget.printed_tokens(plan.context) * len(plan.replicas) * plan.engines,
        "speed": asdict(speed),
        "price_per_hour": row.price_of_all,
        "cost_per_1000_steps": {
            name: cost and asdict(cost) for name, cost in zip(("one_agent", "full"), row.costs, strict=True)
        },
        "warnings": list(plan.warnings),
    }


def print_rows(console: "Console", rows: Sequence[Row]) -> None:
    """Print the comparison as a table, with what does not fit and how to read it."""
    from rich.table import Table

    table = Table(show_edge=False, pad_edge=False, box=None)
    for name in ("cards", "model", "weights", "context", "shots", "at once", "tok/s", "of all", "step s"):
        is_text = name in ("cards", "model", "weights")
        table.add_column(name, justify="left" if is_text else "right", overflow="fold")
    priced = any(row.price is not None for row in rows)
    for name in ("per hour", "1000 steps", "when full") if priced else ():
        table.add_column(name, justify="right", overflow="fold")
    several = len({row.preset for row in rows}) > 1
    for row in rows:
        model = f"{row.model} {row.preset}" if several else row.model
        if row.plan is None or row.speed is None:
            table.add_row(row.machine.named, model, "does not fit")
            continue
        plan, speed = row.plan, row.speed
        servers = f"{len(plan.replicas)} x " if len(plan.replicas) > 1 else ""
        split = f" on {len(plan.gpus)}" if len(plan.gpus) > 1 else ""
        cells = [
            row.machine.named, model, f"{servers}{plan.weights}{split}", f"{plan.context:,}",
            str(plan.settings.images or 0), str(speed.at_once), _said(speed.one), _said(speed.all_of_them),
            _said(speed.step_s),
        ]  # fmt: skip
        if priced:
            price = row.price_of_all
            cells += ["?" if price is None else f"{price:.2f}", *map(_said, row.costs)]
        table.add_row(*cells)
    console.print(table)
    for row in rows:
        if row.refusal:
            console.print(f"{row.machine.named}, {row.model or 'any model'}: {row.refusal}", markup=False)
        elif row.speed is not None and row.speed.measured:
            note = f"{row.machine.named}, {row.model}: measured ({row.speed.measured})"
            console.print(note, markup=False, style="dim")
    console.print(
        "Speeds are ranges from the cards' data sheets (docs/serving.md has the formula) where nothing was measured: "
        "--measured CARD=FILE shows what a bench found. ? is unknown.",
        style="dim",
    )


def _said(found: Range | None) -> str:
    if found is None:
        return "?"
    low, high = (f"{end:,.{0 if end >= 10 else 1 if end >= 1 else 2}f}" for end in (found.low, found.high))
    return low if low == high else f"{low}-{high}"
