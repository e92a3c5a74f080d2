"""Translates a family's own calls, such as `left_double(start_box='(1,2)')`, to the vocabulary of computer use.

The translation is data, in the family's `family.toml` or a shared file. The table `calls` maps a call's name to its
arguments: the "action", and defaults. The table `arguments` maps an argument's name to its name in computer use; for a
single call, this is under "arguments" in `calls`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.core.actions import Action
from agent.core.geometry import Grid, GridPoint
from agent.families.base import ArgumentError, Call
from agent.families.shared.computer_use import FUNCTIONS, Vocabulary, read_action

#: How many equal calls in a row are plausible: a key may be pressed three times. With more, the model repeats itself.
MOST_EQUAL = 3


@dataclass(frozen=True, slots=True)
class OwnNames:
    """The calls of a family, and their meaning."""

    calls: Mapping[str, Mapping[str, Any]]
    arguments: Mapping[str, str]
    words: Vocabulary
    prompt: str = ""  # what tells the models the calls; if empty, they know all arguments

    @classmethod
    def of(cls, data: Mapping[str, Any], grid: Grid, prompt: str = "") -> "OwnNames":
        """Read the tables `calls` and `arguments` of a file, and what `Vocabulary.of` reads."""
        calls = {name.lower(): means for name, means in data["calls"].items()}
        return cls(calls, data.get("arguments", {}), Vocabulary.of(data, grid), prompt)

    def read(self, call: Call) -> Action[GridPoint]:
        """Return the action of a call. Raises ArgumentError: there is no such call, or an argument is invalid.

        Errors go back to the model, so they name arguments as the model knows them.
        """
        try:
            return read_action(self.said(call), self.words)
        except ArgumentError as error:
            raise ArgumentError(error.kind, self._in_own_words(named(call), str(error))) from error

    def _in_own_words(self, call: Call, error: str) -> str:
        means = self.calls.get(call.name.strip().lower(), {})
        names = {**means.get("arguments", {}), **self.arguments}
        known = {own: shared for own, shared in names.items() if own in self.prompt or not self.prompt}
        own_names = {shared: own for own, shared in reversed(known.items())}
        error = re.sub(r'"(\w+)"', lambda found: f'"{own_names.get(found[1], found[1])}"', error)
        return re.sub(f"^{means['action']} needs", f"{call.name} needs", error) if means else error

    def said(self, call: Call) -> dict[str, Any]:
        """Translate a call's arguments to computer use. Raises ArgumentError: there is no such call."""
        call = named(call)
        means = self.calls.get(call.name.strip().lower())
        if means is None:
            raise ArgumentError("unknown_action", f"there is no action {call.name[:40]!r}")
        names = {**self.arguments, **means.get("arguments", {})}
        usual = {name: value for name, value in means.items() if name != "arguments"}
        given = {names.get(name, name): value for name, value in call.arguments.items() if value not in (None, "")}
        return {**usual, **given, "action": means["action"]}

    def __contains__(self, name: object) -> bool:
        """Whether there is a call of this name."""
        return isinstance(name, str) and name.strip().lower() in self.calls


def named(call: Call) -> Call:
    """Return the call under its action's name, if that is one of its arguments."""
    action = call.arguments.get("action")
    if call.name.lower() not in FUNCTIONS or not isinstance(action, str):
        return call
    return Call(action, {name: value for name, value in call.arguments.items() if name != "action"}, call.id)


def unrepeated(calls: Sequence[Call]) -> int:
    """Return how many calls of an answer count. A call that comes more than `MOST_EQUAL` times in a row ends them.

    Of the repeated calls, the first counts.
    """
    for begin in range(len(calls) - MOST_EQUAL):
        if all(call == calls[begin] for call in calls[begin : begin + MOST_EQUAL + 1]):
            return begin + 1
    return len(calls)
