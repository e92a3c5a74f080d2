"""Typing actions of some models, which may also click first, replace the old text, or press Enter."""

from agent.core.actions import Action, PressKeys
from agent.core.geometry import GridPoint
from agent.families.base import Acts, ArgumentError, Call
from agent.families.shared.computer_use import FUNCTIONS, Vocabulary, read_action, read_call

#: Arguments that replace the old text (GUI-Owl, Fara), and arguments that press Enter afterwards.
_REPLACE = ("clear", "delete_existing_text")
_ENTER = ("enter", "press_enter")
_SWITCH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False, "": False}
_TYPING = ("type", "input_text")


def read_typing(call: Call, words: Vocabulary) -> Acts:
    """Return the action of a call; for typing, all its actions in order. Raises ArgumentError."""
    arguments = call.arguments
    name = str(arguments.get("action", "")).strip().lower()
    if call.name not in FUNCTIONS or words.names.get(name, name) not in _TYPING:
        return read_call(call, words)
    done: list[Action[GridPoint]] = []
    if arguments.get("coordinate") not in (None, [], ""):
        done.append(read_action({"action": "left_click", "coordinate": arguments["coordinate"]}, words))
    flags = [arguments[key] for key in _REPLACE if key in arguments]
    if any(map(_is_set, flags)) if flags else words.replaces:
        done.append(PressKeys(("ctrl", "a")))
    done.append(read_action({"action": "type", "text": arguments.get("text", arguments.get("text_value"))}, words))
    flags = [arguments[key] for key in _ENTER if key in arguments]
    if _is_set(flags[0]) if flags else words.enters and not str(arguments.get("text")).endswith("\n"):
        done.append(PressKeys(("enter",)))
    return done


def _is_set(value: object) -> bool:
    """Return whether a switch is on: true, 1, or either as text.

    Raises ArgumentError: it is not a valid switch value.
    """
    written = "" if value is None else str(value).strip().lower()
    if written not in _SWITCH:
        raise ArgumentError("bad_argument", "a switch of typing is true or false")
    return _SWITCH[written]
