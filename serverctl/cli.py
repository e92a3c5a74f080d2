"""The command line of `mai-server`: finds the subcommand, imports it, and turns errors into sentences and statuses."""

import difflib
import importlib
import json
import sys
from collections.abc import Sequence

from foundation.errors import ExitStatus, MaiError

#: Subcommands: their module in `serverctl.commands`, and what they do in a few words.
COMMANDS = {
    "plan": ("plan", "what would be started on this machine (or another), and why"),
    "install": ("install", "make an environment with the right vLLM for this machine"),
    "up": ("up", "start a server and wait until it answers"),
    "status": ("status", "what a server is doing: stage, memory, load, cache hits, latency"),
    "logs": ("logs", "a server's log"),
    "down": ("down", "stop a server and everything it started"),
    "doctor": ("doctor", "say what this machine has and lacks for serving"),
    "diagnose": ("diagnose", "explain a vLLM log: what failed, why, what to do"),
    "bench": ("bench", "measure latency and throughput with screenshots"),
    "tune": ("tune", "read a server's own numbers and say what to change"),
    "export": ("export", "systemd unit, compose file, Kubernetes manifest, script, notebook, Prometheus files"),
    "batch": ("batch", "many screenshots and instructions from a file, answers into a file"),
}

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


def main(argv: Sequence[str] | None = None) -> int:
    """Run `mai-server` and return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("--help", "-h", "help", "--version", "-V"):
        return _about(arguments[0] if arguments else "")
    name = arguments.pop(0)
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f" Did you mean {near[0]}?" if near else " See mai-server --help."
        print(f"mai-server: There is no command {name!r}.{hint}", file=sys.stderr)
        return ExitStatus.USAGE
    # What follows "--" is for vLLM, a --json there too.
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return _run(name, arguments, "--json" in own)


def _about(word: str) -> int:
    """Help or version. Without any word the help too, but as a usage error."""
    if word in ("--version", "-V"):
        from importlib.metadata import PackageNotFoundError, version

        try:
            text = f"mai-server {version('mai-agent')}"
        except PackageNotFoundError:
            text = "mai-server (checkout)"
    else:
        listing = "\n".join(f"  {name:<10}{about}" for name, (_, about) in COMMANDS.items())
        text = _HELP.format(commands=listing)
    try:
        print(text, flush=True)
    except BrokenPipeError:
        sys.stdout = None
    return ExitStatus.DONE if word else ExitStatus.USAGE


def _run(name: str, arguments: list[str], as_json: bool) -> int:
    try:
        command = importlib.import_module(f"serverctl.commands.{COMMANDS[name][0]}")
        status = int(command.main(arguments))
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except MaiError as error:
        if as_json:
            print(json.dumps({"error": {"what": error.what, "remedy": error.remedy, "status": int(error.exit_status)}}))
        print(f"mai-server: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("mai-server: Stopped: Ctrl-C.", file=sys.stderr)
        return ExitStatus.STOPPED
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        sys.stdout = None
        return ExitStatus.NOT_DONE
    except OSError as error:  # a full disk, a folder that went away
        print(
            f"mai-server: {error.strerror or error}: {error.filename or 'output'}. Is there space, and is it yours?",
            file=sys.stderr,
        )
        return ExitStatus.ENVIRONMENT
