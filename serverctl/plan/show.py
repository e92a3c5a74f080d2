"""Shows a plan in the terminal (rich) and as JSON."""

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from foundation.printing import counted
from serverctl.hardware.facts import GIB, Hardware
from serverctl.plan.goal import Plan
from serverctl.plan.memory import Budget
from serverctl.plan.render import Command, Line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

#: Colour and character of each part of the memory bar. The characters differ, for terminals without colours.
_LOOK = {
    "weights": ("blue", "█"),
    "activations": ("magenta", "▓"),
    "graphs": ("cyan", "▒"),
    "context": ("yellow", "░"),
    "KV cache": ("green", "■"),
    "left free": ("bright_black", "·"),
}


def parts(budget: Budget) -> list[tuple[str, int]]:
    """Return the parts of a card's memory in bytes, in the order of the bar. Their sum is the card's memory."""
    kv = max(0, budget.kv)
    return [
        ("weights", budget.weights),
        ("activations", budget.activations),
        ("graphs", budget.graphs),
        ("context", budget.context),
        ("KV cache", kv),
        ("left free", max(0, budget.total - budget.used - kv)),
    ]


def bar(budget: Budget, width: int) -> list[tuple[str, str, str]]:
    """Return the bar as runs of (text, colour, name), `width` characters in all. Every nonempty part is visible."""
    present = [(name, size) for name, size in parts(budget) if size > 0]
    if not present:
        return []
    total = sum(size for _, size in present)
    counts = {name: max(1, round(size / total * width)) for name, size in present}
    largest = max(counts, key=lambda name: counts[name])
    counts[largest] = max(1, counts[largest] + width - sum(counts.values()))
    return [(_LOOK[name][1] * count, _LOOK[name][0], name) for name, count in counts.items()]


def shell_line(command: Command) -> str:
    """Return the command as a shell line, environment first."""
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in command.env.items())
    return f"{settings} {shlex.join(command.argv())}".strip()


def to_json(plan: Plan, command: Command, hardware: Hardware, vllm: str, vllm_origin: str) -> dict[str, Any]:
    """Return the whole plan as JSON values. Sizes are in bytes, contexts in tokens, utilisation is a share."""
    budget = plan.budget
    return {
        "model": plan.model.name,
        "source": plan.model.source,
        "family": plan.model.family,
        "parameters": plan.model.shape.parameters,
        "precision": plan.computed,
        "preset": plan.preset,
        "vendor": plan.vendor,
        "vllm": {"version": vllm, "capabilities": vllm_origin},
        "hardware": {**asdict(hardware), "vendor": hardware.vendor},
        "replicas": [
            [{"index": gpu.index, "name": gpu.name, "uuid": gpu.uuid} for gpu in group] for group in plan.replicas
        ],
        "settings": plan.settings.given(),
        "argv": command.argv(),
        "env": dict(command.env),
        "flags": [_flag_json(line) for line in command.lines],
        "extra": list(command.extra),
        "dropped": list(command.dropped),
        "memory": {
            "total": budget.total,
            "requested": budget.requested,
            **{name.replace(" ", "_").lower(): size for name, size in parts(budget)},
            "measured": budget.measured,
        },
        "expected": {
            "kv_bytes_per_token": budget.token,
            "kv_tokens": budget.printed_tokens(plan.context),
            "block_size": budget.block,
            "engines": plan.engines,
            "max_model_len": plan.context,
            "max_concurrency": round(plan.max_concurrency, 2),
        },
        "limits": limits_json(plan),
        "warnings": list(plan.warnings),
        "notes": list(plan.notes),
    }


def _flag_json(line: Line) -> dict[str, Any]:
    reason = line.reason
    return {
        "flag": line.flag, "value": line.value, "setting": line.knob, "reason": reason.text, "source": reason.source,
        "automatic": reason.automatic,
    }  # fmt: skip


def summary_json(plan: Plan, command: Command) -> dict[str, Any]:
    """Return the summary of a plan for a server's state file."""
    return {
        "preset": plan.preset,
        "precision": plan.computed,
        "settings": plan.settings.given(),
        "cards": [gpu.name for gpu in plan.gpus],
        "expected_kv_tokens": plan.budget.printed_tokens(plan.context),
        "expected_concurrency": round(plan.max_concurrency, 2),
        "argv": command.argv(),
        "dropped": list(command.dropped),
        "warnings": list(plan.warnings),
    }


def limits_json(plan: Plan) -> dict[str, Any]:
    """Return the limits for agents: images per request, pixels per image, context, and screenshots to keep."""
    return {
        "images": plan.settings.images,
        "max_pixels": plan.settings.longest_edge,
        "context": plan.context,
        "history_images": min(plan.model.history_images, plan.settings.images or plan.model.history_images),
    }


def print_plan(console: "Console", plan: Plan, command: Command, hardware: Hardware) -> None:
    """Print a plan: model, memory, warnings, every flag with its reason, and notes."""
    from rich.markup import escape
    from rich.text import Text

    summary = f"{plan.weights} weights, on {_where(plan, hardware)} (preset {plan.preset})"
    console.print(f"[bold]{escape(plan.model.name)}[/bold], {escape(summary)}")
    width = max(20, min(72, console.width - 4))
    pieces = [(text, colour) for text, colour, _ in bar(plan.budget, width)]
    console.print(Text.assemble("  ", *pieces))
    legend = Text("  ")
    for name, size in parts(plan.budget):
        if size:
            colour, mark = _LOOK[name]
            legend.append(f"{mark} ", style=colour)
            legend.append(f"{name} {size / GIB:.1f}  ")
    legend.append(f"of {plan.budget.total / GIB:.1f} GiB")
    legend.append(", as measured here" if plan.budget.measured else ", estimated", style="dim")
    console.print(legend)
    each = "" if plan.engines == 1 else f" in each of {plan.engines} engines"
    screenshots = counted(plan.settings.images, "screenshot") if plan.settings.images else "no screenshots"
    images = "" if plan.model.shape.vision is None else f"; {screenshots} a request"
    console.print(
        f"  KV cache of {plan.budget.printed_tokens(plan.context):,} tokens{each}: {plan.max_concurrency:.2f} requests "
        f"of {plan.context:,} tokens at a time{images}"
    )
    for text in plan.warnings:
        console.print(f"[yellow]![/yellow] {escape(text)}")
    for text in command.dropped:
        console.print(f"[yellow]left out[/yellow] {escape(text)}")
    console.print(_reasons(plan, command))
    for text in plan.notes:
        console.print(f"[dim]- {escape(text)}[/dim]")


def _reasons(plan: Plan, command: Command) -> "Table":
    from rich.markup import escape
    from rich.table import Table

    table = Table(show_edge=False, pad_edge=False, box=None)
    table.add_column("flag", style="bold", overflow="fold", min_width=30)
    table.add_column("why", overflow="fold")
    for entry in command.lines:
        mark = "" if entry.reason.automatic else "[green]yours:[/green] "
        table.add_row(escape(" ".join(entry.words)), mark + escape(entry.reason.text))
    for word in command.extra:
        table.add_row(escape(word), "[green]yours[/green]")
    for name, value in command.env.items():
        table.add_row(escape(f"{name}={value}"), escape(plan.env[name][1].text))
    return table


def _where(plan: Plan, hardware: Hardware) -> str:
    if not plan.gpus:
        return f"the processor ({hardware.cpu.name}, {hardware.cpu.cores} cores)"
    count = len(plan.gpus)
    cards = f"{count} x {plan.gpus[0].name}" if count > 1 else plan.gpus[0].name
    return cards if len(plan.replicas) == 1 else f"{len(plan.replicas)} servers, each on {cards}"
