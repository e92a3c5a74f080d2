"""Values in a policy file and their parsed forms: patterns, chords, regions and named lists."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import BeforeValidator, Field, ValidationInfo

from agent.core.geometry import Region
from agent.core.keys import chord
from agent.safety.situation import Fact
from agent.safety.words import WordList

T = TypeVar("T")

#: Matches the position where a shell expects a command name; patterns write <command> for it. It includes programs that
#: run the command after them. If such a program's name is also an ordinary word, an option or a number must follow.
_COMMAND = (
    r"(?:(?m:^)|[;&|(`]|\$\(|\b(?:sudo|exec|nohup|env|xargs|setsid|stdbuf|ionice|then|do|else)[ \t]"
    r"|\b(?:sudo|doas|env|xargs|nice|timeout|time|watch|parallel|taskset|chrt|strace|script|command)"
    r"(?:[ \t]{1,9}(?:-\S{1,40}|\d\S{0,20}|\w{1,40}=\S{0,80})){1,9}[ \t])[ \t]*(?:[$#>%][ \t]+)?"
    r"(?:/(?:usr/)?(?:local/)?s?bin/)?"
)


def _pattern(written: Any) -> re.Pattern[str]:
    try:
        return re.compile(written.replace("<command>", _COMMAND), re.IGNORECASE)
    except (AttributeError, TypeError, re.error) as error:
        raise ValueError(f"{written!r} is not a regular expression ({error})") from error


def chord_of(keys: Iterable[str]) -> frozenset[str]:
    """Return a chord with equivalent keys unified."""
    return frozenset("enter" if name == "kp_enter" else name for name in keys)


def _chord(written: Any) -> frozenset[str]:
    """Parse a chord, a list of key names, into canonical names."""
    if not isinstance(written, list) or not written:
        raise ValueError('a chord of keys is a list of names, such as ["ctrl", "w"]')
    return chord_of(chord([str(one) for one in written]))


def _region(written: Any) -> Region:
    if isinstance(written, list) and [type(number) for number in written] == [int] * 4 and min(written[2:]) > 0:
        return Region(*written)
    raise ValueError("it must be [left, top, width, height] in whole numbers")


@dataclass(frozen=True, slots=True)
class Named:
    """The named lists of a policy file that its rules refer to."""

    groups: Mapping[str, Any] = field(default_factory=dict)  # [groups]
    words: Mapping[str, WordList] = field(default_factory=dict)  # [words]


def _named(written: Any, info: ValidationInfo) -> Any:
    """Replace names of [groups], alone or in a list, with their lists. Any other single name stays, and fails as not
    being a list.
    """
    groups = info.context.groups if info.context else {}
    if isinstance(written, str):
        return groups.get(written, written)
    if not isinstance(written, list):
        return written
    called = [groups.get(one, one) if isinstance(one, str) else [one] for one in written]
    return [item for one in called for item in (one if isinstance(one, list) else [one])]


def _listed(written: Any, info: ValidationInfo) -> Any:
    known = info.context.words if info.context else {}
    names = [written] if isinstance(written, str) else written
    if not isinstance(names, list) or not names or (unknown := [one for one in names if one not in known]):
        raise ValueError(f"{unknown[0] if isinstance(names, list) and names else written!r} is no list of [words]")
    return tuple(known[one] for one in names)


#: Types for the values in a policy file, with their parsers.
Expression: TypeAlias = Annotated[re.Pattern[str], BeforeValidator(_pattern)]
Box: TypeAlias = Annotated[Region, BeforeValidator(_region)]
Text = Annotated[str, Field(pattern=r"\S")]
#: A condition. An empty list is an error, because it would be no condition.
Some = Annotated[tuple[T, ...], Field(min_length=1), BeforeValidator(_named)]
Names = Annotated[tuple[Text, ...], BeforeValidator(_named)]
Patterns = Some[Expression]
Chord = Annotated[frozenset[str], BeforeValidator(_chord)]
Words = Annotated[tuple[WordList, ...], BeforeValidator(_listed)]
Facts = Annotated[
    tuple[Fact, ...], Field(min_length=1), BeforeValidator(lambda one: (one,) if isinstance(one, str) else one)
]
