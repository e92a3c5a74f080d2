"""Translates a family's own calls, such as `left_double(start_box='(1,2)')`, to the vocabulary of computer use.

The translation is data, in the family's `family.toml` or a shared file. The table `calls` maps a call's name to its
arguments: the "action", and defaults. The table `arguments` maps an argument's name to its name in computer use; for a
single call, this is under "arguments" in `calls`. Typing may also click first, replace the old text, or press Enter.
"""

import re
from collections.abc import Collection, Sequence
from typing import Any

from agent.core.actions import Action, PressKeys
from agent.core.geometry import GridPoint
from agent.families.base import Acts, ArgumentError, Call
from agent.families.shared.computer_use import FUNCTIONS, Vocabulary, read_action, read_call, with_point

#: How many equal calls in a row are plausible: a key may be pressed three times. With more, the model repeats itself.
MOST_EQUAL = 3


def read_own(call: Call, words: Vocabulary, prompt: str = "") -> Action[GridPoint]:
    """Return the action of a family's own call. Raises ArgumentError: there is no such call, or an argument is invalid.

    Errors go back to the model, so they use its own names of arguments: those in `prompt`, if a prompt is given.
    """
    try:
        return read_action(said(call, words), words)
    except ArgumentError as error:
        raise ArgumentError(error.kind, _in_own_words(named(call), words, prompt, str(error))) from error


def _in_own_words(call: Call, words: Vocabulary, prompt: str, error: str) -> str:
    means = words.calls.get(call.name.strip().lower(), {})
    names = {**means.get("arguments", {}), **words.arguments}
    own_names = {shared: own for own, shared in reversed(names.items()) if own in prompt or not prompt}
    error = re.sub(r'"(\w+)"', lambda found: f'"{own_names.get(found[1], found[1])}"', error)
    return re.sub(f"^{means['action']} needs", f"{call.name} needs", error) if means else error


def said(call: Call, words: Vocabulary) -> dict[str, Any]:
    """Translate a call's arguments to computer use. Raises ArgumentError: there is no such call."""
    call = named(call)
    means = words.calls.get(call.name.strip().lower())
    if means is None:
        raise ArgumentError("unknown_action", f"there is no action {call.name[:40]!r}")
    names = {**words.arguments, **means.get("arguments", {})}
    usual = {name: value for name, value in means.items() if name != "arguments"}
    given = {names.get(name, name): value for name, value in call.arguments.items() if value is not None}
    arguments = {name: value for name, value in given.items() if value != "" or name == "text"}
    for point in [name.removesuffix("_x") for name in arguments if name.endswith("_x")]:  # its two numbers apart
        arguments[point] = {axis: arguments.pop(f"{point}_{axis}", None) for axis in "xy"}
    return {**usual, **arguments, "action": means["action"]}


def named(call: Call, functions: Collection[str] = FUNCTIONS) -> Call:
    """Return a call of one of `functions` with its argument "action" as the name, if it has this argument."""
    action = call.arguments.get("action")
    if call.name.lower() not in functions or not isinstance(action, str):
        return call
    return Call(action, {name: value for name, value in call.arguments.items() if name != "action"}, call.id)


def unrepeated(calls: Sequence[Call]) -> int:
    """Return how many calls of an answer count: those up to a call that comes more than `MOST_EQUAL` times in a row.

    The first of the repeated calls counts.
    """
    for begin in range(len(calls) - MOST_EQUAL):
        if all(call == calls[begin] for call in calls[begin : begin + MOST_EQUAL + 1]):
            return begin + 1
    return len(calls)


#: Arguments that replace the old text (GUI-Owl, Fara), and arguments that press Enter afterwards.
_REPLACE = ("clear", "delete_existing_text")
_ENTER = ("enter", "press_enter")
_SWITCH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False, "": False}
_TYPING = ("type", "input_text")


def read_typing(call: Call, words: Vocabulary) -> Acts:
    """Return the action of a call; for typing, all its actions in order. Raises ArgumentError."""
    arguments = with_point(call.arguments)
    name = str(arguments.get("action", "")).strip().lower()
    if call.name not in FUNCTIONS or words.names.get(name, name) not in _TYPING:
        return read_call(call, words)
    done: list[Action[GridPoint]] = []
    if arguments.get("coordinate") not in (None, [], ""):
        done.append(read_action({"action": "left_click", "coordinate": arguments["coordinate"]}, words))
    flags = [arguments[key] for key in _REPLACE if key in arguments]
    if any(map(_is_switched_on, flags)) if flags else words.replaces:
        done.append(PressKeys(("ctrl", "a")))
    text = arguments.get("text", arguments.get("text_value"))
    is_emptied = text == "" and any(map(_is_switched_on, flags))  # the call says itself that old text goes
    done.append(PressKeys(("backspace",)) if is_emptied else read_action({"action": "type", "text": text}, words))
    flags = [arguments[key] for key in _ENTER if key in arguments]
    if _is_switched_on(flags[0]) if flags else words.enters and not str(arguments.get("text")).endswith("\n"):
        done.append(PressKeys(("enter",)))
    return done


def _is_switched_on(value: object) -> bool:
    """Return whether a switch is on: true, 1, or either as text.

    Raises ArgumentError: it is not a valid switch value.
    """
    written = "" if value is None else str(value).strip().lower()
    if written not in _SWITCH:
        raise ArgumentError("bad_argument", "a switch of typing is true or false")
    return _SWITCH[written]
