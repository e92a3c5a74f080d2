"""Runs a subcommand of a program: imports it, and turns errors into sentences and exit statuses."""

import importlib

from foundation import printing
from foundation.errors import ExitStatus, MaiError


def run_command(program: str, module: str, arguments: list[str], as_json: bool = False) -> int:
    """Run the `main(arguments)` of a module and give the exit status. Nothing but SystemExit leaves this.

    The module is imported now, so that other subcommands cost nothing. The program's name stands before every sentence;
    `as_json` prints errors as JSON on standard output too.
    """
    try:
        status = int(importlib.import_module(module).main(arguments))
        printing.flush()
        return status
    except MaiError as error:
        return say_error(program, error, as_json)
    except KeyboardInterrupt:
        printing.remark(f"{program}: Stopped: Ctrl-C.")
        return ExitStatus.STOPPED
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        printing.close_output()
        return ExitStatus.NOT_DONE
    except OSError as error:  # a full disk behind standard output, a folder that went away
        printing.close_output()
        what = f"{error.strerror or error}: {error.filename or 'output'}"
        printing.remark(f"{program}: {what}. Is there space, and is it yours?")
        return ExitStatus.ENVIRONMENT
    except Exception as error:
        return say_mistake(program, error)


def say_mistake(program: str, error: BaseException) -> int:
    """Say that the program itself made a mistake, and where its traceback is; gives the exit status."""
    from foundation.stray_output import keep_traceback

    log = keep_traceback(error)
    where = "" if log is None else f" The details are in {log}."
    printing.remark(f"{program}: It made a mistake itself: {type(error).__name__}: {error}. Please report it.{where}")
    return ExitStatus.NOT_DONE


def say_error(program: str, error: MaiError, as_json: bool = False) -> int:
    """Print an error as a command's last word; gives its exit status."""
    if as_json:
        told = {"what": error.what, "remedy": error.remedy, "status": int(error.exit_status)}
        printing.put_json({"error": told})
    printing.remark(f"{program}: {error}")
    return error.exit_status
