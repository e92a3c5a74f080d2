"""`mai-server logs`: a server's output, with times."""

from foundation.command_line import Parser
from foundation.errors import EnvironmentLacksError, ExitStatus
from foundation.printing import put, put_json
from serverctl.process import control
from serverctl.process.logs import follow, log_files, tail
from serverctl.process.state import LIVE, Folder, current_state


def main(arguments: list[str]) -> int:
    """Print a server's log."""
    parser = Parser(
        "mai-server logs",
        description="A server's output, each line with its time (UTC).",
        epilog="examples:\n  mai-server logs\n  mai-server logs -f\n  mai-server logs -n 1000 | mai-server diagnose -",
    )
    add = parser.add_argument
    add("-n", "--lines", type=int, default=100, metavar="N", help="how many of the last lines (default 100)")
    add("-f", "--follow", action="store_true", help="go on with new lines until Ctrl-C or the server's end")
    add("--name", default=control.DEFAULT_NAME, help="which server")
    add("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args(arguments)
    folder = Folder(options.name)
    if not log_files(folder.log_file):
        raise EnvironmentLacksError(
            f"There is no log of a server named {options.name!r}.", "`mai-server up` starts one."
        )
    lines, place = tail(folder.log_file, max(0, options.lines))
    for line in lines:
        _show(line, options.json)
    if not options.follow:
        return ExitStatus.DONE
    idle = 0
    for line in follow(folder.log_file, place):
        if line:
            idle = 0
            _show(line, options.json)
            continue
        idle += 1
        if idle % 20 == 0 and current_state(folder).phase not in LIVE:
            break
    return ExitStatus.DONE


def _show(line: str, as_json: bool) -> None:
    if not as_json:
        put(line)
        return
    time, _, text = line.partition(" ")
    put_json({"time": time, "text": text})
