"""Answers as fields between tabs: `explain:...\taction:CLICK\tpoint:512,233\tsummary:...`."""

import re

from agent.families.base import Call, ParseFailure

_FIELD = r"(?:explain|cot|action|action_type|point[12]?|value|return|summary|is_keyboard|keyboard_exists)"
#: A tab, what models write instead, or a line end, each before a field.
_BETWEEN = re.compile(rf"(?:\t|\\t|\n)\s*(?={_FIELD}\s*[:：])")
_NAMED = re.compile(rf"\s*({_FIELD})\s*[:：]\s*(.*)", re.DOTALL)


def tabbed_calls(text: str) -> list[Call] | ParseFailure:
    """Return the calls in an answer's fields. Each is named by its `action`; a second `action` begins another call.

    Fields before the first action, and after the last, belong to the call next to them.
    """
    fields = [named for piece in _BETWEEN.split(text.strip()) if (named := _NAMED.fullmatch(piece))]
    # The value may be truncated.
    if fields and fields[-1][1].startswith(("point", "value")) and not text.endswith("\n"):
        return ParseFailure("truncated", f"the answer ends in {fields[-1][1]}, before the summary")
    calls: list[Call] = []
    before: dict[str, str] = {}
    for field in fields:
        name, value = field[1], field[2].strip()
        if name in ("action", "action_type"):
            calls.append(Call(value, before))
            before = {}
        elif not calls:
            before[name] = value
        else:
            calls[-1] = Call(calls[-1].name, {**calls[-1].arguments, name: value})
    if calls:
        return calls
    return ParseFailure("no_action" if fields or text.strip() else "empty", "there is no field `action` in the answer")


def as_tabbed(call: Call) -> str:
    """Write a call: `explain` first, `summary` last, without tabs and line ends in the values."""
    arguments = {name: _flat(value) for name, value in call.arguments.items()}
    first, last = {"explain": arguments.pop("explain", "")}, {"summary": arguments.pop("summary", "")}
    return "\t".join(f"{name}:{value}" for name, value in {**first, "action": call.name, **arguments, **last}.items())


def _flat(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return re.sub(r"[\t\n]", " ", text).strip()
