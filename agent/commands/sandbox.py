"""`mai-agent sandbox`: lists and stops throw-away desktops that were kept."""

from collections.abc import Sequence

from foundation.arguments import Parser
from foundation.errors import UsageError
from foundation.printing import put


def main(argv: Sequence[str]) -> int:
    """List them, stop one, or stop all that nobody uses."""
    parser = Parser(
        prog="mai-agent sandbox",
        description="List or stop throw-away desktops that were kept.",
        epilog="`mai-agent --sandbox --keep INSTRUCTION` makes one; --sandbox-session and --sandbox-locale (see "
        "mai-agent --help) choose its kind and language.",
    )
    parser.add_argument("what", choices=("list", "stop"), nargs="?", default="list")
    parser.add_argument("name", nargs="?", help="which one to stop; all of them without a name")
    options = parser.parse_args(argv)
    if options.what == "list" and options.name:
        raise UsageError("list takes no name.", "See mai-agent sandbox --help.")
    from agent.sandbox.desktop import find_sandboxes, reap_sandboxes, stop_sandbox

    reap_sandboxes()
    found = list(find_sandboxes())
    if options.what == "list":
        for sandbox in found:
            state = "in use" if sandbox.owned else "kept"
            put(f"{sandbox.name}  display {sandbox.display}  {state}  . {sandbox.folder}/environment")
        if not found:
            put("There are no sandboxes.")
        return 0
    if options.name:
        stop_sandbox(options.name)
        return 0
    for sandbox in found:
        if not sandbox.owned:
            stop_sandbox(sandbox.name)
            put(f"stopped {sandbox.name}")
    return 0
