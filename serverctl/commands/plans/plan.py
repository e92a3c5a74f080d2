"""`mai-server plan`: what would be started, and why."""

import argparse
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from foundation.command_line import Parser, port_number
from foundation.errors import ExitStatus, UsageError
from foundation.printing import is_terminal, put, put_json, put_text
from serverctl.commands.options import add_beside, add_goal, add_hardware, hardware_of, resolve_options, split_flags
from serverctl.commands.plans.comparison import add_comparison, compare, print_rows, row_json
from serverctl.hardware.facts import GIB
from serverctl.plan.env import replica_env
from serverctl.plan.goal import Plan
from serverctl.plan.render import render
from serverctl.plan.settings import KNOBS
from serverctl.plan.show import print_plan, shell_line, to_json
from serverctl.plan.speed import speed_by_prompt
from serverctl.planning import Resolved, speed_table
from serverctl.vllm.builds import BUILD_REMEDIES

_EXAMPLES = """examples:
  mai-server plan                                        this machine
  mai-server plan --gpu T4 --model MAI-UI-8B             a card that is not here
  mai-server plan --gpu "RTX 3090" --gpus 2 --model MAI-UI-32B
  mai-server plan --gpu "RTX 6090" --gpu-memory 47.3 --gpu-capability 13.0 --gpu-bandwidth 2200    one nobody listed
  mai-server plan --preset throughput --gpu H100 --gpus 8
  mai-server plan --compare T4,L4,2xL4,A100-80,H100 --model MAI-UI-2B,MAI-UI-8B --price L4=0.70
  mai-server plan --model MAI-UI-2B --beside Qwen3-VL-8B-Instruct    two models at a time
  mai-server plan --set images=4 --set max_model_len=16384
  mai-server plan -- --seed 0                            vLLM's own flags after --
  mai-server plan --model Qwen3-VL-2B-Thinking --gpu L40S --max-model-len 40960 --kv-gib 37.15
"""

#: Columns of a comparison that goes into a file.
_WIDE = 160


def main(arguments: list[str]) -> int:
    """Print a plan."""
    own, flags = split_flags(arguments)
    parser = Parser(
        "mai-server plan",
        description="What would be started, with the reason of every flag, and the memory it takes. Starts nothing.",
        epilog=_EXAMPLES,
    )
    add_hardware(parser)
    add_goal(parser)
    add_beside(parser)
    add_comparison(parser)
    add = parser.add_argument
    add("--kv-gib", type=float, metavar="GIB", help="predict for this much KV cache a card (vLLM's log names it)")
    add("--port", type=port_number, default=8000, help="the port to show (default 8000)")
    add("--command", action="store_true", help="print only the command line")
    add("--settings", action="store_true", help="list every setting that --set takes")
    add("--json", action="store_true", help="print JSON")
    options = parser.parse_args(own)
    if options.settings:
        put(*(f"  {name:<28}{knob.flag:<32}{knob.about}" for name, knob in KNOBS.items()))
        return ExitStatus.DONE
    if options.compare is not None:
        return _compare(options, flags + options.flags)
    first = resolve_options(options, flags + options.flags, hardware_of(options))
    if options.kv_gib is not None:
        if not 0 < options.kv_gib < 100_000:
            raise UsageError(
                f"--kv-gib cannot be {options.kv_gib}.", "It is the GiB of KV cache that vLLM's log names."
            )
        first = replace(first, goal=replace(first.goal, kv_bytes=int(options.kv_gib * GIB)))
    requests = first.beside(options.beside)
    if options.json:
        documents = [_document(request, options.port) for request in requests]
        put_json(documents if len(documents) > 1 else documents[0], indent=1)
        return ExitStatus.DONE
    for number, request in enumerate(requests):
        if number and not options.command:
            put("")
        _show(request, options)
    return ExitStatus.DONE


def _document(request: Resolved, port: int) -> dict[str, Any]:
    plan = request.plan()
    command = render(plan, request.capabilities, port)
    document = to_json(plan, command, request.hardware, request.capabilities.version, request.capabilities.origin)
    by_prompt = speed_by_prompt(plan, speed_table(), request.goal.screen)
    return {**document, "by_prompt": [asdict(each) for each in by_prompt]}


def _of_prompts(plan: Plan, screen: tuple[int, int]) -> Iterator[str]:
    """Yield the estimated speed by the length of the prompt, for a person."""
    found = speed_by_prompt(plan, speed_table(), screen)
    if not found:
        return
    yield "First token of a new prompt, and tokens/s, by screenshots (estimated from the data sheet, one request):"
    for each in found:
        first, rate = each.first_token_s, each.tokens_per_s
        yield (
            f"  {each.images}: {each.prompt_tokens:,} tokens, {first.low:.2f}-{first.high:.2f} s, "
            f"{rate.low:.0f}-{rate.high:.0f} tokens/s"
        )
    newest = found[-1].next_step_s
    yield f"  with all but the newest screenshot in the prefix cache: {newest.low:.2f}-{newest.high:.2f} s"


def _show(request: Resolved, options: argparse.Namespace) -> None:
    plan = request.plan()
    if options.command:
        vllm = request.capabilities
        for number, cards in enumerate(plan.replicas):  # each server has a port and cards of its own
            server = replace(plan, env=replica_env(plan, cards, vllm.version))
            put_text(shell_line(render(server, vllm, options.port + number)))
        return
    command = render(plan, request.capabilities, options.port)
    from foundation.rich_console import GatedConsole

    console = GatedConsole(highlight=False)
    print_plan(console, plan, command, request.hardware)
    for text in _of_prompts(plan, request.goal.screen):
        console.print(text, style="dim", markup=False)
    how = BUILD_REMEDIES.get(request.hardware.vendor, "`mai-server install` does it.")
    state = "" if request.vllm else f" {how}"
    console.print(
        f"vLLM {request.capabilities.version} ({'installed' if request.vllm else 'not installed'}); every flag was "
        f"checked against {request.capabilities.parser}.{state}",
        style="dim",
        markup=False,
    )


def _compare(options: argparse.Namespace, flags: list[str]) -> int:
    rows = compare(options, flags)
    if options.json:
        put_json([row_json(row) for row in rows], indent=1)
    else:
        from foundation.rich_console import GatedConsole

        # Without a terminal, use a fixed width, so that no cell is cut to a terminal's width.
        print_rows(GatedConsole(highlight=False, width=None if is_terminal("output") else _WIDE), rows)
    return ExitStatus.DONE if any(row.plan for row in rows) else ExitStatus.ENVIRONMENT
