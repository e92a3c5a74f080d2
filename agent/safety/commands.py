"""Recognizes terminal lines that only read, list or change the directory. All other lines need approval."""

import re
from collections.abc import Mapping
from functools import cache

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


def is_harmless_chord(keys: tuple[str, ...]) -> bool:
    """Whether a chord only scrolls, zooms or copies in a terminal."""
    return chord_of(keys) in _known().chords


def _only_reads(line: str) -> bool:
    if not _PLAIN.fullmatch(line) or "&" in line.replace("&&", ""):
        return False
    return all(_is_known(_SPLIT.findall(part)) for part in _JOINED.split(line.strip()))


def _is_known(words: list[str]) -> bool:
    if not words:
        return False
    bare = [re.sub(r"['\"]", "", word) for word in words[1:]]
    unquoted = [_QUOTED.sub("", word) for word in words[1:]]
    if any(map(_known().private.search, bare)) or any(map(_GLOBBED_FOLDER.search, unquoted)):
        return False
    globbed = any(word.startswith(("*", "?")) for word in unquoted)  # a file's name may be an option
    return any(form.covers([*bare, *[_ANY_OPTION] * globbed]) for form in _known().commands.get(words[0], []))


class _Form:
    """A way to call a command that only reads."""

    def __init__(self, data: Mapping[str, str]) -> None:
        self._first = re.compile(data.get("first", ""))
        self._options = re.compile(data.get("options", "(?!)"))
        self._arguments = re.compile(data.get("arguments", "(?!)"))

    def covers(self, words: list[str]) -> bool:
        """Whether the words after the command's name are all known."""
        if self._first.pattern:
            at = next((number for number, word in enumerate(words) if not word.startswith("-")), 0)
            if not words or not self._first.fullmatch(words[at]):
                return False
            words = [*words[:at], *words[at + 1 :]]
        return all(
            (self._options if word.startswith(("-", "+")) else self._arguments).fullmatch(word) for word in words
        )


class _Known:
    def __init__(self, data: Mapping[str, object]) -> None:
        commands: list[Mapping[str, str]] = data["commands"]  # type: ignore[assignment]
        self.commands: dict[str, list[_Form]] = {}
        for one in commands:
            for name in one["names"].split():
                self.commands.setdefault(name, []).append(_Form(one))
        self.private = re.compile(str(data["private"]), re.IGNORECASE)
        chords: list[list[str]] = data["chords"]  # type: ignore[assignment]
        self.chords = {chord_of(one) for one in chords}


@cache
def _known() -> _Known:
    return _Known(load_config("policies/commands.toml"))
