"""Options of runs for callers from Python: the command line's options, by the same names."""

import argparse
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from agent.console.terminal import Console
from agent.core.actions import Action
from agent.core.geometry import DesktopPoint, Size
from agent.options import RunOptions
from agent.run.loop.context import Person
from agent.safety.policy import Approval, Question
from agent.safety.question_text import asked
from agent.safety.stop import StopSwitch
from agent.settings import OPTIONS, Option, load_settings
from foundation.command_line import positive, positive_seconds
from foundation.errors import UsageError

#: Takes a question in words and returns whether the action may be carried out.
Approve = Callable[[str], bool | Awaitable[bool]]


def run_options(arguments: Mapping[str, Any]) -> RunOptions:
    """Return the options of runs; the person's settings apply where nothing is given. Raises UsageError."""
    options = {option.name: option for option in OPTIONS}
    if unknown := sorted(arguments.keys() - options.keys() - {"dry_run"}):
        raise UsageError(f"There is no option {unknown[0]!r}.", f"There are: {', '.join(sorted(options))}, dry_run.")
    values: dict[str, Any] = dict.fromkeys(options)
    values |= {name: False for name, option in options.items() if option.kind == "flag"} | {"dry_run": False}
    values |= {name: _read(options[name], value) if name in options else value for name, value in arguments.items()}
    return RunOptions.of(argparse.Namespace(**values), load_settings())


def _read(option: Option, value: Any) -> Any:
    if value is None:
        return None
    try:
        match option.kind:
            case "path":
                return Path(value)
            case "size":
                return (
                    value if isinstance(value, Size) else Size.parse(value) if isinstance(value, str) else Size(*value)
                )
            case "count":
                return positive(str(value))
            case "seconds":
                return positive_seconds(str(value))
            case "flag":
                return value is True
    except (TypeError, ValueError, argparse.ArgumentTypeError) as error:
        raise UsageError(f"{option.name} cannot be {value!r} ({error}).", option.help) from error
    if option.choices and value not in option.choices:
        raise UsageError(f"{option.name} cannot be {value!r}.", f"Choose one of {', '.join(option.choices)}.")
    if not option.choices and not isinstance(value, str):
        raise UsageError(f"{option.name} cannot be {value!r}.", option.help)
    return value


class CallbackPerson:
    """A `Person` whose approvals come from the caller's function; the model's questions get no answer."""

    def __init__(self, approve: Approve) -> None:
        self._approve = approve

    async def approve(self, action: Action[DesktopPoint], question: Question) -> Approval:
        """Ask the function whether the action may be carried out."""
        request = asked(action, question)
        words = "\n".join(
            filter(None, (" ".join(filter(None, (request.what, request.where))), request.text, *request.reasons))
        )
        return Approval(allowed=await self._says_yes(words), by="the program")

    async def ask(self, question: str) -> str | None:  # noqa: ARG002 -- the protocol's
        """Return None: nobody is there."""
        return None

    async def permit(self, question: str) -> bool:
        """Ask the function a yes/no question of the program itself."""
        return await self._says_yes(question)

    async def _says_yes(self, question: str) -> bool:
        try:
            answer = self._approve(question)
            return (await answer if isinstance(answer, Awaitable) else answer) is True
        except Exception as error:  # the caller's mistake, not ours
            why = f"{type(error).__name__}: {error}"
            raise UsageError(f"`approve_by` failed: {why}.", "Mend that function.") from error


def person_of(approve: Approve | None) -> Callable[[StopSwitch], Person]:
    """Return a factory of a run's person: the caller's function, or the terminal."""
    return Console if approve is None else lambda _: CallbackPerson(approve)
