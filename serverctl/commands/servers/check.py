"""`mai-server check`: the checklist of a server that goes into production, answered point by point."""

from dataclasses import asdict

from foundation.command_line import Parser
from foundation.errors import ExitStatus
from foundation.printing import put, put_json
from serverctl.checklist import points
from serverctl.commands.endpoint_options import add_target, chosen_target
from serverctl.process import control

_MARKS = {True: "ok   ", False: "WRONG", None: "?    "}


def main(arguments: list[str]) -> int:
    """Check a server."""
    parser = Parser(
        "mai-server check",
        description="Answer the checklist of a server that goes into production, point by point: health, a question "
        "about a picture, tokens a second, the key, prefix caching, memory, context, attention, cards, supervisor, "
        "errors. Of a server that somebody else started, what it tells is judged, and the rest is a ?.",
        epilog="exit status: 0 nothing is wrong, 1 something is, 3 no server answers\n\n"
        "examples:\n  mai-server check\n  mai-server check --endpoint 10.0.0.7:8000 --json",
    )
    add_target(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    endpoint = chosen_target(options)
    ours = (state for state in control.live_servers() if state.is_ready and state.url == endpoint.base_url)
    found = points(endpoint, next(ours, None))
    wrong = False
    kept = []
    for point in found:
        wrong |= point.ok is False
        kept.append(asdict(point))
        if not options.json:
            put(f"{_MARKS[point.ok]}  {point.name:<15}{point.found}")
            if point.ok is False and point.advice:
                put(f"       {'':<15}-> {point.advice}")
    if options.json:
        put_json({"endpoint": endpoint.base_url, "model": endpoint.model, "ok": not wrong, "points": kept}, indent=1)
    return ExitStatus.NOT_DONE if wrong else ExitStatus.DONE
