"""`mai-server down`: stops a server and everything it started."""

from foundation.command_line import Parser
from foundation.errors import ExitStatus
from foundation.printing import put, put_json, remark
from serverctl.process import control
from serverctl.process.state import Folder, current_state


def main(arguments: list[str]) -> int:
    """Stop servers."""
    parser = Parser(
        "mai-server down",
        description="Stop a server and everything it started. Requests in flight get five seconds.",
        epilog="examples:\n  mai-server down\n  mai-server down --name second\n  mai-server down --all",
    )
    parser.add_argument("--name", default=None, help="which one (default: the server named default, and its replicas)")
    parser.add_argument("--all", action="store_true", help="every server")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    names = control.ordered_names()
    if options.name:
        names = [options.name]
    elif not options.all:
        first = control.DEFAULT_NAME
        names = [name for name in names if name == first or name.removeprefix(f"{first}-").isdigit()] or [first]
    stopped = []
    for name in names:
        if not options.json and current_state(Folder(name)).phase not in ("stopped", "failed"):
            remark(f"mai-server: stopping {name} ...")
        if control.stop(name):
            stopped.append(name)
    if options.json:
        put_json({"stopped": stopped})
    else:
        put(f"Stopped: {', '.join(stopped)}." if stopped else "Nothing was running.")
    return ExitStatus.DONE
