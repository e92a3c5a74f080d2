"""The command line: finds the subcommand, imports it, and turns errors into sentences and exit statuses."""

import importlib
import sys
from collections.abc import Sequence

import agent
from foundation.errors import EnvironmentLacksError, ExitStatus, MaiError

#: Subcommands: their module in `agent.commands`, and what they do in a few words.
COMMANDS = {
    "run": ("run", "do what the instruction says (also without the word run)"),
    "act": ("act", "one screenshot, one decision, printed"),
    "stop": ("stop", "stop the runs that are going on, from another terminal"),
    "runs": ("runs", "list recorded runs"),
    "show": ("show", "show one recorded run"),
    "report": ("report", "write one recorded run as an HTML file"),
    "replay": ("replay", "run the decisions of a recorded run again, without a model"),
    "doctor": ("doctor", "say what this machine has and lacks"),
    "sandbox": ("sandbox", "list or stop throw-away desktops that were kept"),
    "parse": ("parse", "read models' answers (JSON lines in, JSON lines out)"),
    "prompt": ("prompt", "print the chat messages of a request"),
    "fit": ("fit", "print the size and tokens of an image as a model gets it"),
}

#: Names that scripts may rely on later; until then they must not be taken for an instruction.
RESERVED = ("eval",)


def main(argv: Sequence[str] | None = None) -> int:
    """Run `mai-agent` and return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] in (["--version"], ["-V"]):
        print(f"mai-agent {agent.__version__}")
        return ExitStatus.DONE
    try:
        if arguments and arguments[0] in RESERVED:
            raise EnvironmentLacksError(
                f"`mai-agent {arguments[0]}` is not built yet.", "See --help for what is there."
            )
        name = arguments.pop(0) if arguments and arguments[0] in COMMANDS else "run"
        command = importlib.import_module(f"agent.commands.{COMMANDS[name][0]}")
        status = int(command.main(arguments))
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except MaiError as error:
        print(f"mai-agent: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("mai-agent: Stopped: Ctrl-C.", file=sys.stderr)
        return ExitStatus.STOPPED
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        sys.stdout = None  # nothing may be flushed into it at exit
        return ExitStatus.NOT_DONE
    except OSError as error:  # a full disk behind standard output, a folder that went away
        sys.stdout = None
        print(f"mai-agent: {error.strerror or error}. Is there space, and is it yours?", file=sys.stderr)
        return ExitStatus.ENVIRONMENT
