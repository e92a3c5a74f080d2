"""Recognizes terminal lines that only read, list or change the directory. All other lines need approval."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from agent.safety.policy_rules.rule import chord_of
from foundation.configs import load_config

#: The only characters of a harmless line: plain ones, file patterns, command joins; quotes are handled separately.
_PLAIN = re.compile(r"[\w \t./~*?,:@%+=|&'\"-]*")
#: The only accepted operators between commands: a pipe and &&.
_JOINED = re.compile(r"\s*(?:\|(?!\|)|&&)\s*")
#: A prompt: everything up to the first prompt sign, which shells follow with a space.
_PROMPT = re.compile(r"[^\n]*?[$#%>❯»➜λ](?:[ \u00a0]|$)")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
#: A pattern for folders, which may stand for a private one: /pro?/self/environ.
_GLOBBED_FOLDER = re.compile(r"[*?][^/]*/")
#: An option that a file pattern at the beginning of a word may expand to.
_ANY_OPTION = "--any-option=1"
_SPLIT = re.compile(r"(?:[^\s'\"]|'[^']*'|\"[^\"]*\")+")


def after_prompt(line: str) -> int | None:
    """Return where the command begins in a line of a terminal; None if no prompt is found.

    The first prompt sign counts, so that a sign inside a command cannot hide the text before it.
    """
    found = _PROMPT.match(line)
    return found.end() if found else None


def is_harmless(text: str) -> bool:
    """Whether all lines of a text only read. The last line may be incomplete."""
    lines = [line for line in re.split(r"[\r\n]+", text) if line.strip()]
    return bool(lines) and all(map(_only_reads, lines))


def is_harmless_chord(keys: tuple[str, ...], *, at_prompt: bool) -> bool:
    """Whether a chord only scrolls, zooms or copies in a terminal, or only edits the line at its prompt."""
    known = [*_known()["chords"], *(_known()["chords_at_prompt"] if at_prompt else ())]
    return chord_of(keys) in map(chord_of, known)


def _only_reads(line: str) -> bool:
    if not _PLAIN.fullmatch(line) or "&" in line.replace("&&", ""):
        return False
    return all(_is_known(_SPLIT.findall(part)) for part in _JOINED.split(line.strip()))


def _is_known(words: list[str]) -> bool:
    if not words:
        return False
    bare = [re.sub(r"['\"]", "", word) for word in words[1:]]
    unquoted = [_QUOTED.sub("", word) for word in words[1:]]
    private = re.compile(_known()["private"], re.IGNORECASE)
    if any(map(private.search, bare)) or any(map(_GLOBBED_FOLDER.search, unquoted)):
        return False
    globbed = any(word.startswith(("*", "?")) for word in unquoted)  # a file's name may be an option
    bare += [_ANY_OPTION] * globbed
    return any(_covers(form, bare) for form in _known()["commands"] if words[0] in form["names"].split())


@cache
def _known() -> dict[str, Any]:
    return load_config("policies/commands.toml")


def _covers(form: Mapping[str, str], words: list[str]) -> bool:
    """Whether a read-only form of a command allows all words after its name."""
    if "first" in form:
        at = next((number for number, word in enumerate(words) if not word.startswith("-")), 0)
        if not words or not re.fullmatch(form["first"], words[at]):
            return False
        words = [*words[:at], *words[at + 1 :]]
    kinds = ("options" if word.startswith(("-", "+")) else "arguments" for word in words)
    return all(re.fullmatch(form.get(kind, "(?!)"), word) for kind, word in zip(kinds, words, strict=True))
