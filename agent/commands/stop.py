"""`mai-agent stop`: stops runs from another terminal, or from a shortcut of the desktop."""

from collections.abc import Sequence

from agent.safety.stop import Running, find_running, send_stop, wait_ended
from foundation.command_line import Parser
from foundation.errors import MaiError, UsageError
from foundation.printing import put, put_json

#: Seconds for a run to end; it lets go of keys and buttons long before.
_END_TIMEOUT = 5.0


def main(argv: Sequence[str]) -> int:
    """Stop all runs, or one."""
    parser = Parser(
        prog="mai-agent stop",
        description="Stop the runs that are going on: nothing more is pressed or moved, and what is held is released "
        "at once.",
        epilog="Exit status: 0 stopped; 1 nothing was running, or a run has not ended. Where mai-agent has no stop "
        "key (Wayland), bind this command to a key of your desktop.",
    )
    parser.add_argument("run", metavar="RUN", nargs="?", help="only this run: its id, or the beginning of it")
    parser.add_argument("--kill", action="store_true", help="end the program of a run that does not end by itself")
    parser.add_argument("--json", action="store_true", help="one object per run")
    options = parser.parse_args(argv)
    wanted = _wanted(find_running(), options.run)
    if not wanted:
        if not options.json:
            put("Nothing is running.")
        return 1
    signalled = [entry for entry in wanted if _told(entry)]
    left = wait_ended(signalled, _END_TIMEOUT)
    killed = [entry for entry in left if options.kill and send_stop(entry, hard=True)]
    left = wait_ended(left, 1.0) if killed else left
    for entry in wanted:
        _report(entry, ended=entry not in left, killed=entry in killed, as_json=options.json)
    return 1 if left else 0


def _wanted(running: list[Running], name: str | None) -> list[Running]:
    if name is None:
        return running
    exact = [entry for entry in running if entry.run == name]
    found = exact or [entry for entry in running if entry.run.startswith(name)]
    if len(found) > 1:
        raise UsageError(f"Several runs begin with {name}: {', '.join(one.run for one in found)}.", "Give a longer id.")
    if not found and running:
        raise MaiError(f"No run {name} is going on.", f"Running: {', '.join(one.run for one in running)}.")
    return found


def _told(entry: Running) -> bool:
    try:
        return send_stop(entry)
    except PermissionError as error:
        raise MaiError(f"The run {entry.run} belongs to another user.", "Stop it as that user.") from error


def _report(entry: Running, *, ended: bool, killed: bool, as_json: bool) -> None:
    pid = entry.process.pid
    if as_json:
        fields = {"run": entry.run, "instruction": entry.instruction, "pid": pid, "started": entry.started}
        put_json({**fields, "ended": ended, "killed": killed})
    elif ended:
        put(f"{'killed' if killed else 'stopped'} {entry.run} ({entry.instruction})")
    else:
        put(f"{entry.run} was told to stop and lets go of everything, but process {pid} has not ended after "
              f"{_END_TIMEOUT:.0f} s. `mai-agent stop --kill` ends it.")  # fmt: skip
