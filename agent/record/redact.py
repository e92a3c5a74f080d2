"""Masks secrets in what a run writes down, by rules a person can read and by texts they name.

A secret is found in one place (a text that is typed, a line "password: ...") and then masked in all: the same word is
in the model's answer, in its thought, and in the note about the step. Screenshots cannot be masked reliably, and are
not.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent.actions import shorten
from foundation.configs import load_config
from foundation.errors import UsageError

#: What a masked text reads like; recognised by reports, replays and the rules themselves.
MASK = re.compile(r"\[redacted \d+ chars\]")
#: Shorter texts that a rule finds are masked where they were found only: elsewhere they may be parts of any word.
_SHORTEST = 4
_WORD = re.compile(r"[^\s\"'“”‘’`]+")


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret.

    Args:
        name: what it is called.
        pattern: what it looks like.
        typed: whether it counts only for a whole typed text, or one word of the instruction.
    """

    name: str
    pattern: re.Pattern[str]
    typed: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """What counts as a secret: rules for texts, and what is said before a secret is typed, or told by the person.

    Args:
        rules: for texts.
        thought: what a thought says before a secret is typed.
        question: what the model asks when the reply is a secret.
    """

    rules: tuple[Rule, ...] = ()
    thought: re.Pattern[str] | None = None
    question: re.Pattern[str] | None = None

    @classmethod
    def shipped(cls) -> "Rules":
        """The rules of configs/redaction.toml."""
        return cls.read(load_config("redaction.toml"))

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Rules":
        """Rules from a parsed file. Raises UsageError."""
        try:
            rules = tuple(
                Rule(str(entry["name"]), re.compile(entry["pattern"], re.IGNORECASE), entry.get("in") == "typed")
                for entry in data.get("rules", [])
            )
            said = (data.get(name, {}).get("pattern") for name in ("thought", "question"))
            return cls(rules, *(None if one is None else re.compile(one, re.IGNORECASE) for one in said))
        except (AttributeError, KeyError, TypeError, re.error) as error:
            raise UsageError(f"A redaction rule is wrong: {error}.", "A rule needs name and pattern.") from error


def is_masked(value: Any) -> bool:
    """Whether a text, or any text in a JSON value, was masked."""
    return any(MASK.search(text) for text in _texts(value))


class Redactor:
    """Masks texts, and remembers what it found.

    Args:
        rules: what counts as a secret; None for the shipped rules.
        secrets: texts that are masked wherever they occur.
    """

    def __init__(self, rules: Rules | None = None, secrets: Iterable[str] = ()) -> None:
        self._rules = Rules.shipped() if rules is None else rules
        self._known: set[str] = set()
        self._shown: dict[str, str] = {}  # shortened forms of texts that hold a secret, and what to show instead
        self._pattern: re.Pattern[str] | None = None
        for secret in secrets:
            self._remember(secret, 1)

    @property
    def found(self) -> int:
        """How many different secrets are known so far; 0: nothing was masked."""
        return len(self._known)

    def instruction(self, text: str) -> str:
        """The instruction masked; one that names a password has it as a word of its own."""
        for word in _WORD.findall(text):
            self._learn_typed(word.rstrip(".,;:"))
        return self.text(text)

    def text(self, text: str) -> str:
        """The text masked."""
        self._learn(text)
        return self._masked(text)

    def data(self, value: Any) -> Any:
        """A JSON value with every text in it masked; what any part of it reveals is masked in all parts."""
        thought = value.get("thought") if isinstance(value, dict) else None
        for typed in _typed(value):
            self._learn_typed(typed)
            if isinstance(thought, str) and self._rules.thought and self._rules.thought.search(thought):
                self._remember(typed.strip(), _SHORTEST)
        for text in _texts(value):
            self._learn(text)
        for action in _actions(value):
            self._learn_reply(action.get("target"), value.get("reply"))
            self._mask_shortened(action.get("target"))
            for asked in (action, action.get("approval")):
                self._mask_shortened(asked.get("instead") if isinstance(asked, Mapping) else None)
        return self._masked_all(value)

    def _learn_reply(self, target: Any, reply: Any) -> None:
        """What a person says when they are asked for a password is one."""
        asked, pattern = target.get("question") if isinstance(target, Mapping) else None, self._rules.question
        if isinstance(asked, str) and isinstance(reply, str) and pattern is not None and pattern.search(asked):
            self._remember(reply.strip(), _SHORTEST)

    def _mask_shortened(self, target: Any) -> None:
        """Sentences about an action have its text cut off, so that half a secret would be left in them."""
        for text in _texts(target):
            masked = self._masked(text)
            if masked != text:
                self._shown[shorten(text)] = shorten(masked)

    def _learn(self, text: str) -> None:
        for piece in MASK.split(text):
            for rule in self._rules.rules:
                if not rule.typed:
                    for match in rule.pattern.finditer(piece):
                        self._remember(_secret(match), _SHORTEST)

    def _learn_typed(self, text: str) -> None:
        stripped = text.strip()
        if MASK.search(stripped):
            return
        for rule in self._rules.rules:
            if rule.typed and rule.pattern.fullmatch(stripped):
                self._remember(stripped, _SHORTEST)

    def _remember(self, secret: str, shortest: int) -> None:
        if len(secret) < shortest or secret in self._known or MASK.fullmatch(secret):
            return
        self._known.add(secret)
        forms = {form for known in self._known for form in _forms(known)}
        self._pattern = re.compile("|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True)))

    def _masked(self, text: str) -> str:
        for shown, instead in self._shown.items():
            text = text.replace(shown, instead)
        pieces, position = [], 0
        for mask in MASK.finditer(text):  # what is a mask already stays as it is
            pieces += [self._masked_piece(text[position : mask.start()]), mask[0]]
            position = mask.end()
        return "".join([*pieces, self._masked_piece(text[position:])])

    def _masked_piece(self, piece: str) -> str:
        if self._pattern is not None:
            piece = self._pattern.sub(lambda match: _mask(match[0]), piece)
        for rule in self._rules.rules:
            if not rule.typed:
                piece = rule.pattern.sub(_mask_secret, piece)
        return piece

    def _masked_all(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._masked(value)
        if isinstance(value, Mapping):
            return {key: self._masked_all(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._masked_all(item) for item in value]
        return value


def _mask(text: str) -> str:
    return f"[redacted {len(text)} chars]"


def _group(match: re.Match[str]) -> str | int:
    """The group that holds the secret: `secret` or `secret2`, or the whole match."""
    groups = match.groupdict()
    return next((name for name in ("secret", "secret2") if groups.get(name) is not None), 0)


def _secret(match: re.Match[str]) -> str:
    return match[_group(match)]


def _mask_secret(match: re.Match[str]) -> str:
    group = _group(match)
    start, end = match.start(group) - match.start(), match.end(group) - match.start()
    if MASK.search(match[0]) or "[redacted" in match[group]:  # masked a moment ago, by a text that is known
        return match[0]
    return f"{match[0][:start]}{_mask(match[group])}{match[0][end:]}"


def _forms(secret: str) -> Iterator[str]:
    """A secret as it is, and as it stands within JSON that a model wrote."""
    yield secret
    for ascii_only in (False, True):
        yield json.dumps(secret, ensure_ascii=ascii_only)[1:-1]


def _actions(value: Any) -> Iterator[Mapping[str, Any]]:
    """What holds an action in a step or an event: itself, and each of its actions."""
    if isinstance(value, Mapping):
        actions = value.get("actions")
        yield value
        yield from (action for action in (actions if isinstance(actions, list) else ()) if isinstance(action, Mapping))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _typed(value: Any) -> Iterator[str]:
    """The texts in a JSON value that are typed: of our own actions, and of calls in the model's own form."""
    if isinstance(value, Mapping):
        text = value.get("text")
        if isinstance(text, str) and "type" in (value.get("type"), value.get("action")):
            yield text
        for item in value.values():
            yield from _typed(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _typed(item)
