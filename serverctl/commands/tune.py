"""`mai-server tune`: what a server's own numbers say should be changed."""

from dataclasses import asdict, replace

from foundation.arguments import Parser
from foundation.errors import EnvironmentLacksError, ExitStatus, MaiError
from foundation.printing import put, put_json
from serverctl.commands.progress import StartProgress
from serverctl.plan.compose import TEXT_TOKENS
from serverctl.process import control, probe
from serverctl.process.request import ServerRequest, prepare, read_request
from serverctl.process.state import Folder, State, current_state
from serverctl.tune import LEAST_REQUESTS, Advice, Reading, advise, changes


def main(arguments: list[str]) -> int:
    """Advise, and with --apply restart with the changes."""
    parser = Parser(
        "mai-server tune",
        description="Read a server's /metrics and /v1/models, and say what to change and why. Your own settings "
        "are never changed.",
        epilog="Let it serve for a while first: advice needs requests to look at.\n\nexamples:\n  mai-server tune\n"
        "  mai-server tune --apply          restart with the changes; back to the old ones if it does not start",
    )
    parser.add_argument("--name", default=control.DEFAULT_NAME, help="which server")
    parser.add_argument("--apply", action="store_true", help="make the changes: restarts the server")
    parser.add_argument("--force", action="store_true", help="with --apply: also while requests are running")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    folder = Folder(options.name)
    state = current_state(folder)
    if not state.is_ready or state.port is None:
        raise EnvironmentLacksError(f"No server named {options.name!r} is ready.", "`mai-server up` starts one.")
    request = read_request(folder.request_file)
    reading = read(state, folder, request)
    found = advise(reading)
    wanted = changes(found, reading.fixed)
    if options.json and not options.apply:
        put_json(document(reading, found, wanted), indent=1)
        return ExitStatus.DONE
    if not options.json:
        show(reading, found, wanted)
    if not options.apply:
        return ExitStatus.DONE
    if not wanted:
        if options.json:
            put_json(document(reading, found, wanted))
        else:
            put("Nothing to apply.")
        return ExitStatus.DONE
    if reading.metrics.running and not options.force:
        raise MaiError(
            f"{reading.metrics.running} requests are running.", "Wait for them, or restart anyway with --force."
        )
    state = apply(options.name, request, wanted, found, quiet=options.json)
    if options.json:
        put_json({**document(reading, found, wanted), "applied": True, "endpoint": state.url}, indent=1)
    else:
        put(f"{state.model} answers again at {state.url}.")
    return ExitStatus.DONE


def read(state: State, folder: Folder, request: ServerRequest) -> Reading:
    """The numbers as they are now. Raises EnvironmentLacksError where the server does not give them."""
    assert state.port is not None
    metrics = probe.read_metrics(state.port, folder.key())
    if metrics is None:
        raise EnvironmentLacksError("The server does not answer /metrics.", "`mai-server status` says how it is.")
    context = probe.served_context(state.port, folder.key(), state.model) or state.limits.get("context")
    plan = prepare(request, request.goal).plan
    edge = plan.settings.longest_edge
    expected = (plan.settings.images or 1) * plan.model.image_tokens(*request.goal.screen, edge) + TEXT_TOKENS // 2
    settings = state.plan.get("settings", {})
    return Reading(metrics, settings, context, expected, frozenset(request.goal.overrides))


def apply(name: str, request: ServerRequest, wanted: dict[str, object], found: list[Advice], quiet: bool) -> State:
    """Restarts with the changes; when that fails, with what was there before, and raises MaiError."""
    because = {one.setting: f"tuned: {one.because}" for one in found if one.setting in wanted}
    goal = request.goal.adjusted(wanted, because)
    port = current_state(Folder(name)).port
    with StartProgress(quiet=quiet) as show_progress:
        control.stop(name)
        control.launch(name, replace(request, goal=goal, port=port))
        state = control.wait_ready(name, show_progress.update)
        if control.as_ready(state) is not None:
            return state
        failure = control.failure_of(state)
        show_progress.say("The changes did not start; going back.")
        control.stop(name)
        control.launch(name, replace(request, port=port))
        control.wait_ready(name, show_progress.update)
    raise MaiError(f"The changes did not start: {failure.what}", "The server runs as before.")


def document(reading: Reading, found: list[Advice], wanted: dict[str, object]) -> dict[str, object]:
    """Advice as JSON values."""
    return {
        "metrics": reading.metrics.to_json(),
        "context": reading.context,
        "enough_requests": (reading.metrics.finished or 0) >= LEAST_REQUESTS,
        "advice": [asdict(one) for one in found],
        "would_apply": wanted,
    }


def show(reading: Reading, found: list[Advice], wanted: dict[str, object]) -> None:
    """Advice for a person."""
    finished = reading.metrics.finished
    seen = "?" if finished is None else f"{finished:,}"
    put(f"From {seen} finished requests:")
    if (finished or 0) < LEAST_REQUESTS:
        put(f"  That is little to go by: rates are judged from {LEAST_REQUESTS} requests on.")
    if not found:
        put("  Nothing to change: what is measured does not call for it.")
    for one in found:
        if not one.setting:
            put(f"- {one.because}.")
            continue
        mine = "" if one.setting in wanted else "  (your own setting: it is left alone)"
        now = "vLLM's default" if one.now is None else one.now
        put(f"- {one.setting}: {now} -> {one.value}{mine}", f"    because {one.because}.")
    if wanted:
        put("`mai-server tune --apply` restarts the server with these.")
