"""The command line of `mai-server`: finds the subcommand and runs it."""

import difflib
import sys
from collections.abc import Sequence

from foundation.command_line import run_command, say_error
from foundation.errors import ExitStatus, UsageError
from foundation.printing import put_text
from serverctl.commands import COMMANDS, MODULES

_HELP = """usage: mai-server COMMAND ...

Starts, watches, repairs and explains the local vLLM that mai-agent uses. Usually nothing of this is needed:
mai-agent starts a server by itself where there is a graphics card.

commands:
{commands}

start here:
  mai-server plan                          what would run on this machine, and why
  mai-server up                            start it (and install vLLM first, if asked)
  mai-server status --watch
  mai-server plan --gpu L4 --model MAI-UI-8B    for hardware that is not here

Every command has --help and --json. Exit status: 0 done, 1 failed, 2 usage, 3 something is lacking, 130 stopped."""


#: Words that people try although they are no commands, and the advice for each.
_MEANT = {
    "metrics": "`mai-server status --json` has a server's numbers; its own are at /metrics of its address.",
    "presets": "`mai-server plan --help` lists them (--preset); `mai-server plan --preset NAME` shows what one does.",
    "config": "Settings are in config.toml ([server], docs/serving.md); `mai-server plan --settings` lists them.",
    "settings": "`mai-server plan --settings` lists them.",
    "start": "Did you mean up?", "run": "Did you mean up?", "serve": "Did you mean up?", "stop": "Did you mean down?",
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run `mai-server` and return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("--help", "-h", "help", "--version", "-V"):
        return run_command("mai-server", "serverctl.cli:about_main", arguments)
    name = arguments.pop(0)
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, 1)
        hint = _MEANT.get(name) or (f"Did you mean {near[0]}?" if near else "See mai-server --help.")
        return say_error("mai-server", UsageError(f"There is no command {name!r}.", hint))
    # Arguments after "--" are for vLLM, even --json.
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return run_command("mai-server", MODULES[name], arguments, "--json" in own)


def completion_main(arguments: list[str]) -> int:
    """Print a shell completion script, or the man page."""
    from foundation import command_line

    about = "Starts, watches, repairs and explains the local vLLM that mai-agent uses."
    return command_line.completion_main("mai-server", about, COMMANDS, MODULES, arguments)


def about_main(arguments: list[str]) -> int:
    """Print the help or the version. Without arguments, print the help and return the status of a usage error."""
    if arguments[:1] in (["--version"], ["-V"]):
        from importlib.metadata import PackageNotFoundError, version

        try:
            put_text(f"mai-server {version('mai-agent')}")
        except PackageNotFoundError:
            put_text("mai-server (checkout)")
    else:
        put_text(_HELP.format(commands="\n".join(f"  {name:<14}{about}" for name, about in COMMANDS.items())))
    return ExitStatus.DONE if arguments else ExitStatus.USAGE
