"""`mai-server up`: starts a server (or finds the one that runs) and waits until it answers."""

import argparse
import contextlib
import sys
from collections.abc import Sequence
from dataclasses import replace

from foundation.command_line import Parser, duration, port_number, positive_seconds
from foundation.errors import ExitStatus, MaiError, StoppedError, UsageError
from foundation.printing import ask_for, put, put_json, remark
from foundation.processes import wait_gone
from serverctl.commands.options import add_beside, add_goal, cards_here, processor_alone, resolve_options, split_flags
from serverctl.commands.progress import InstallProgress, StartProgress
from serverctl.commands.servers.running import found, report, restart, server_json
from serverctl.plan.render import render
from serverctl.planning import Resolved
from serverctl.process import control
from serverctl.process.request import ServerRequest, read_key, server_request, with_swapped_models
from serverctl.process.state import LIVE, Folder, State, current_state, made_key

_EXAMPLES = """examples:
  mai-server up                              the best model for this machine
  mai-server up --model MAI-UI-2B --preset throughput
  mai-server up --set max_model_len=16384 -- --seed 0
  mai-server up --model MAI-UI-2B --beside Qwen3-VL-8B-Instruct    a grounder and a planner
  mai-server up --foreground                 with vLLM's own output, until Ctrl-C
  mai-server up --restart --set max_num_seqs=8      the running server with this changed; clients wait
  mai-server up --model MAI-UI-8B --swap Qwen3-VL-8B-Instruct      the one that a client names is loaded
  mai-server up --again                      the last server as it was: model, settings, port, key

A second `up` finds the server of the first. A key is made at every start unless --key-file or --keep-key says
otherwise; `mai-server status --json` has it. Servers that one `up` starts for several cards have one key.
Ctrl-C while waiting stops the start."""


def main(arguments: list[str]) -> int:
    """Start a server and wait."""
    own, flags = split_flags(arguments)
    parser = Parser("mai-server up", description="Start a server and wait until it answers.", epilog=_EXAMPLES)
    add_goal(parser)
    add_beside(parser)
    group = parser.add_argument_group("running").add_argument
    group("--gpus", type=int, default=None, metavar="N", help="how many of this machine's cards to use")
    group("--cpu", action="store_true", help="serve on the processor (slow)")
    group("--port", type=port_number, metavar="N", help="where to listen on loopback (default: a free port)")
    group("--name", help="the server's name, to run several (default: default)")
    group("--name-as", metavar="NAME", help="what clients call the model (default: its own name)")
    group("--idle", type=duration, metavar="TIME",
          help="end vLLM after 15m, 2h without requests; the next wakes it (default: never)")  # fmt: skip
    group("--key-file", metavar="FILE", help="take the API's key from this file (- for standard input)")
    group("--keep-key", action="store_true", help="take the key that the server with this name had before")
    group("--again", action="store_true", help="start the last server (or that of --name) as it was")
    group("--swap", action="append", default=[], metavar="NAME",
          help="another model at the same address: the one that a client names is loaded (repeat it)")  # fmt: skip
    group("--restart", action="store_true",
          help="change a running server to what this command names, while clients wait; the rest stays")  # fmt: skip
    group("--wait", type=positive_seconds, default=120.0, metavar="S",
          help="with --restart: time for running requests, which then are aborted (120)")  # fmt: skip
    group("--foreground", action="store_true", help="stay, and show vLLM's output")
    group("--no-wait", action="store_true", help="return at once; `mai-server status` tells how it goes")
    group("--yes", action="store_true", help="install vLLM without asking when it is missing")
    group("--json", action="store_true", help="print the server as JSON when it is ready")
    options = parser.parse_args(own)
    options.key = read_key(options.key_file)
    if options.again:
        return _again(options, parser, [*flags, *options.flags])
    options.name = options.name or control.DEFAULT_NAME
    if options.restart:
        return restart(options, [*flags, *options.flags])
    if current_state(Folder(options.name)).phase in LIVE:
        return found(options, [*flags, *options.flags])
    hardware = processor_alone() if options.cpu else cards_here(options.gpus)
    agrees = (lambda _: True) if options.yes else None if options.json or not sys.stdin.isatty() else _ask
    with InstallProgress(quiet=options.json) as bar:
        request = resolve_options(options, flags + options.flags, hardware).with_vllm(agrees, bar.report)
    servers, warnings = _servers(options, request)
    swapped = options.swap or request.config.swap
    if swapped:
        if len(servers) > 1:
            raise UsageError("--swap is for one server.", "Leave out --beside and --preset throughput, or --swap.")
        servers = [(name, with_swapped_models(first, request, swapped)) for name, first in servers]
    return _run(servers, warnings, options, [*flags, *options.flags])


def _run(
    servers: list[tuple[str, ServerRequest]], warnings: Sequence[str], options: argparse.Namespace, flags: Sequence[str]
) -> int:
    """Start servers and report them, or those that another `up` started first."""
    if options.foreground:
        return _foreground(servers, options)
    with StartProgress(quiet=options.json) as show:
        for text in warnings:
            show.say(f"! {text}")
        states = _start(servers, show, wait=not options.no_wait)
    if states is None:
        return found(options, flags)
    return ExitStatus.DONE if options.no_wait else report(states, options.json)


#: The options that say how to start, not what.
_HOW = ("again", "name", "foreground", "no_wait", "yes", "json")


def _again(options: argparse.Namespace, parser: Parser, flags: Sequence[str]) -> int:
    """Start the last server as it was, with those that the same `up` started."""
    actions = [action for action in parser.arguments() if action.option_strings and hasattr(options, action.dest)]
    other = [
        action.option_strings[0]
        for action in actions
        if action.dest not in _HOW and getattr(options, action.dest) not in (action.default, [])
    ]
    if other or flags:
        raise UsageError(
            f"--again takes everything from the last start, and {other[0] if other else flags[0]} is given.",
            "Leave out one of them.",
        )
    options.name = options.name or control.last_started()
    if options.name is None:
        raise UsageError("No server has been started yet.", "`mai-server up` starts one.")
    first = control.as_before(options.name)
    names = first.together or (options.name,)
    options.name = names[0]
    if current_state(Folder(options.name)).phase in LIVE:
        return found(options, ())
    return _run([(name, control.as_before(name)) for name in names], (), options, ())


def _servers(options: argparse.Namespace, request: Resolved) -> tuple[list[tuple[str, ServerRequest]], list[str]]:
    """Return the servers to start by name, one per replica and for each --beside; and the warnings."""
    servers: list[tuple[str, ServerRequest]] = []
    warnings: list[str] = []
    for number, each in enumerate(request.beside(options.beside)):
        plan = each.plan()
        name, name_as, port = options.name, options.name_as, options.port
        if number:
            name, name_as, port = control.name_of_model(plan.model.name), None, None
        if name in (taken for taken, _ in servers):
            raise UsageError(
                f"Two servers would be called {name!r}.",
                "Name each model once; --preset throughput serves one with several cards.",
            )
        render(plan, each.capabilities, 1, name_as)  # raises for a user flag that does not exist
        started = server_request(each, plan, port, name_as, options.idle, options.key, options.keep_key)
        for replica, cards in enumerate(plan.replicas):
            pins = tuple(gpu.uuid or str(gpu.index) for gpu in cards)
            own_port = None if started.port is None else started.port + replica
            own_name = name if replica == 0 else f"{name}-{replica + 1}"
            servers.append((own_name, replace(started, cards=pins, port=own_port)))
        warnings += [text for text in plan.warnings if text not in warnings]
    if len(servers) > 1:  # one key, so that a router can stand before them
        name, first = servers[0]
        key = first.key or (first.keep_key and Folder(name).key()) or made_key()
        names = tuple(name for name, _ in servers)
        servers = [(name, replace(request, key=key, together=names)) for name, request in servers]
    return servers, warnings


def _start(servers: Sequence[tuple[str, ServerRequest]], show: StartProgress, wait: bool) -> list[State] | None:
    """Start servers and wait for them; None if another `up` was quicker. Ctrl-C stops the servers started here.

    Servers that share a card start one after the other, because each measures the free memory when it begins.
    """
    begun: dict[str, ServerRequest] = {}
    try:
        for name, request in servers:
            for other in [other for other, before in begun.items() if set(before.cards) & set(request.cards)]:
                if control.as_ready(state := control.wait_ready(other, show.update)) is None:
                    return [state]
            begun[name] = request
            if not control.launch(name, request):
                del begun[name]
                if name == servers[0][0]:
                    return None
        if not wait:
            show.say("Starting in the background: `mai-server status --watch` shows how it goes.")
            return []
        return [control.wait_ready(name, show.update) for name, _ in servers]
    except KeyboardInterrupt:
        show.say("Stopping the start.")
        for name in begun:
            control.stop(name)
        raise StoppedError("Stopped: Ctrl-C.") from None


def _ask(question: str) -> bool:
    ask_for(f"{question} [Y/n] ")
    return sys.stdin.readline().strip().casefold() in ("", "y", "yes")


def _foreground(servers: list[tuple[str, ServerRequest]], options: argparse.Namespace) -> int:
    """Run the server's supervisor in this process to its end."""
    if len(servers) > 1:
        raise UsageError("Several servers cannot share the foreground.", "Leave --foreground out.")
    from serverctl.process.supervisor.main import supervise

    name, request = servers[0]
    folder = Folder(name)
    folder.make()
    ending = folder.owner()
    if ending is not None and current_state(folder).phase not in LIVE:
        wait_gone(ending, 10)
    announcer = control.Announcer()
    shown = False

    def changed(state: State) -> None:
        nonlocal shown
        with contextlib.suppress(OSError):  # the reader of the output is gone
            for sentence in announcer.events(state):
                remark(f"mai-server: {sentence}")
            if options.json and state.phase == "ready" and not shown:
                shown = True
                put_json(server_json(state))

    def echo(line: str) -> None:
        with contextlib.suppress(OSError):  # after the reader of a pipe has gone, output goes to the log alone
            put(line)

    status = supervise(folder, request, None if options.json else echo, changed)
    if status == control.ALREADY_RUNNING:
        raise MaiError(f"The server {name!r} already runs.", "`mai-server down` stops it.")
    if status == ExitStatus.STOPPED:
        raise StoppedError("Stopped: Ctrl-C.")
    state = current_state(folder)
    if state.phase == "failed":
        raise control.failure_of(state)
    return status
