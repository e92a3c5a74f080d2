"""Masks secrets in the records of a run: texts that match configurable rules, and texts that the person names.

A secret is found in one place (a text that is typed, a line "password: ...") and then masked everywhere: the same
word is in the model's answer, in its thought, and in the note about the step. Screenshots are not masked, because that
cannot be done reliably.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agent.core.actions import shorten
from agent.core.changes import Change
from agent.events.run_events import Event, Receipt, RunFinished
from agent.record.secrets import SecretKeys, forms
from foundation.configs import load_config

#: Matches a mask. Reports, replays and the rules recognise it.
MASK = re.compile(r"\[redacted \d+ chars\]")
#: Shorter texts that a rule finds are masked only in that place: elsewhere they may be parts of any word.
_SHORTEST = 4
_WORD = re.compile(r"[^\s\"'“”‘’`]+")


@dataclass(frozen=True, slots=True)
class Rules:
    """What counts as a secret."""

    texts: tuple[re.Pattern[str], ...] = ()  # in any text
    typed: tuple[re.Pattern[str], ...] = ()  # only as a whole typed text, or one word of the instruction
    thought: re.Pattern[str] | None = None  # matches a thought before a secret is typed
    question: re.Pattern[str] | None = None  # matches a question whose reply is a secret
    asked: re.Pattern[str] | None = None  # matches the policy's reason for an action that types a secret
    field: re.Pattern[str] | None = None  # matches the role of an element into which secrets are typed

    @classmethod
    def shipped(cls) -> "Rules":
        """The rules of configs/redaction.toml."""
        data = load_config("redaction.toml")
        rules = [(rule.get("in") == "typed", re.compile(rule["pattern"], re.IGNORECASE)) for rule in data["rules"]]
        texts, typed = (tuple(rule for kind, rule in rules if kind is wanted) for wanted in (False, True))
        names = ("thought", "question", "asked", "field")
        return cls(texts, typed, *(re.compile(data[name]["pattern"], re.IGNORECASE) for name in names))


def is_masked(value: Any) -> bool:
    """Whether a text, or any text in a JSON value, was masked."""
    return any(MASK.search(text) for text in _texts(value))


class Redactor:
    """Masks texts by rules (the shipped ones for None), and remembers what it found.

    `secrets` are texts that are masked wherever they occur.
    """

    def __init__(self, rules: Rules | None = None, secrets: Iterable[str] = ()) -> None:
        self._rules = Rules.shipped() if rules is None else rules
        self._known: set[str] = set()
        self._shown: dict[str, str] = {}  # shortened forms of texts that hold a secret, and what to show instead
        self._pattern: re.Pattern[str] | None = None
        self._short: set[str] = set()  # too short to be looked for within other texts, except in quotes
        self._keys = SecretKeys()
        self._spelled: set[str] = set()  # secrets pressed key by key, as far as they are known
        for secret in secrets:
            self._remember(secret, 1)

    @property
    def found(self) -> int:
        """The number of different secrets known so far; 0 if nothing was masked."""
        return len(self._known | self._spelled)

    def instruction(self, text: str) -> str:
        """Return the instruction masked. A password in it is a word of its own."""
        for word in _WORD.findall(text):
            self._learn_typed(word.rstrip(".,;:"))
        return self.text(text)

    def text(self, text: str) -> str:
        """Return the text masked."""
        self._learn(text)
        return self._masked(text)

    def data(self, value: Any) -> Any:
        """Return a JSON value with every text masked. A secret that one part reveals is masked in all parts."""
        texts = _texts(value)
        record: Any = value if isinstance(value, dict) else {}
        self._keys.at(record.get("step"), record.get("targets"))
        # An unparsable answer has no separate thought and no action: all of it is searched, each word as if typed.
        unread = [*_unread(record)]
        thoughts = [record.get("thought"), *unread]
        of_secrets = any(_says(self._rules.thought, text) for text in thoughts)
        typed = [text for text, is_typed in texts.items() if is_typed]
        for text in texts:
            self._learn(text)
        for text in typed:
            self._learn_typed(text)
            if of_secrets:
                self._remember(text.strip(), _SHORTEST)
        for raw in unread:
            for word in _WORD.findall(raw):
                self._learn_typed(word.rstrip(".,;:"))
            if of_secrets:
                self._remember(raw.strip(), _SHORTEST)
        for index, action in _actions(record):
            self._learn_place(index, action, of_secrets)
        self._learn_spelled()
        for _, action in _actions(record):
            self._learn_reply(action.get("target"), record.get("reply"))
            approval = action.get("approval")
            self._mask_shortened(action.get("target"))
            self._mask_shortened((approval if isinstance(approval, dict) else action).get("instead"))
        for target in record.get("targets") or ():
            self._mask_shortened(target)
        masked = {text: self._masked(text) for text in texts}
        masked |= {text: _mask(text.strip()) for text in texts if text.strip() in self._short}
        return _replaced(value, masked) if any(text != instead for text, instead in masked.items()) else value

    def event(self, event: Event) -> Event:
        """Return the event with the texts from the computer masked: in a receipt, and at the end of a run."""
        match event:
            case Receipt(changes, remarks):
                masked = tuple(map(self._change, changes))
                return replace(event, changes=masked, remarks=tuple(map(self.text, remarks)))
            case RunFinished(message=message, evidence=evidence):
                return replace(event, message=self.text(message), evidence=tuple(map(self.text, evidence)))
        return event

    def _change(self, change: Change) -> Change:
        before, after = (None if text is None else self.text(text) for text in (change.before, change.after))
        return replace(change, what=self.text(change.what), before=before, after=after)

    def _learn_place(self, index: int, action: dict[str, Any], of_secrets: bool) -> None:
        """Learn the text entered into a field for secrets, according to the element's role or the policy's reason."""
        approval = action.get("approval")
        approval_fields: dict[str, Any] = approval if isinstance(approval, dict) else action
        into_field = any(_says(self._rules.field, one.get("role")) for one in _parts(action, "elements"))
        instead = approval_fields.get("instead")
        for target, reason in ((action.get("target"), "reason"), (instead, "instead_reason")):
            # The elements belong to the action carried out: the person's change of it, if any.
            here = into_field and (instead is None or target is instead)
            here = here or _says(self._rules.asked, approval_fields.get(reason))
            if here or of_secrets or self._keys.releases(target):
                self._keys.learn(index, target)
            if here:
                for text in (text for text, is_typed in _texts(target).items() if is_typed):
                    self._remember(text.strip(), _SHORTEST)
                    if 0 < len(text.strip()) < _SHORTEST:
                        self._short.add(text.strip())

    def _learn_spelled(self) -> None:
        words = {word for word in self._keys.words if len(word) >= _SHORTEST}
        if words != self._spelled:
            self._spelled = words
            self._look_for_known()

    def _learn_reply(self, target: Any, reply: Any) -> None:
        """Learn a person's reply to a question for a password."""
        question, pattern = target.get("question") if isinstance(target, dict) else None, self._rules.question
        if isinstance(question, str) and isinstance(reply, str) and pattern is not None and pattern.search(question):
            self._remember(reply.strip(), _SHORTEST)

    def _mask_shortened(self, target: Any) -> None:
        """Learn the shortened form of a secret, because sentences about an action shorten its text."""
        for text in _texts(target):
            masked = self._masked(text)
            if masked != text:
                self._shown[shorten(text)] = shorten(masked)

    def _learn(self, text: str) -> None:
        for piece in MASK.split(text):
            for pattern in self._rules.texts:
                for match in pattern.finditer(piece):
                    self._remember(match[_group(match)], _SHORTEST)

    def _learn_typed(self, text: str) -> None:
        stripped = text.strip()
        if not MASK.search(stripped) and any(pattern.fullmatch(stripped) for pattern in self._rules.typed):
            self._remember(stripped, _SHORTEST)

    def _remember(self, secret: str, shortest: int) -> None:
        if len(secret) < shortest or secret in self._known or MASK.fullmatch(secret):
            return
        self._known.add(secret)
        self._look_for_known()

    def _look_for_known(self) -> None:
        written = {form for known in self._known | self._spelled for form in forms(known)}
        longest_first = "|".join(re.escape(form) for form in sorted(written, key=len, reverse=True))
        self._pattern = re.compile(longest_first) if written else None

    def _masked(self, text: str) -> str:
        for shown, instead in self._shown.items():
            text = text.replace(shown, instead)
        masked = _outside_masks(self._masked_piece, text)
        return _outside_masks(lambda piece: self._keys.masked(piece, _mask), masked)

    def _masked_piece(self, piece: str) -> str:
        if self._pattern is not None:
            piece = self._pattern.sub(lambda match: _mask(match[0]), piece)
        for short in self._short:
            piece = re.sub(rf"""(["'>“])({re.escape(short)})(["'<”\\])""", rf"\1{_mask(short)}\3", piece)
        if "…" in piece:  # a value that was cut, maybe in the middle of a secret
            *cut, rest = piece.split("…")
            piece = "…".join([*map(self._mask_cut, cut), rest])
        for pattern in self._rules.texts:
            piece = pattern.sub(_mask_secret, piece)
        return piece

    def _mask_cut(self, piece: str) -> str:
        for secret in self._known:
            for length in range(len(secret) - 1, _SHORTEST - 1, -1):
                if piece.endswith(secret[:length]):
                    return piece[:-length] + _mask(secret)
        return piece


def _outside_masks(change: Callable[[str], str], text: str) -> str:
    pieces = re.split(f"({MASK.pattern})", text)
    return "".join(piece if number % 2 else change(piece) for number, piece in enumerate(pieces))


def _mask(text: str) -> str:
    return f"[redacted {len(text)} chars]"


def _group(match: re.Match[str]) -> str | int:
    """Return the group that holds the secret: `secret` or `secret2`, or the whole match."""
    groups = match.groupdict()
    return next((name for name in ("secret", "secret2") if groups.get(name) is not None), 0)


def _mask_secret(match: re.Match[str]) -> str:
    group = _group(match)
    start, end = match.start(group) - match.start(), match.end(group) - match.start()
    if MASK.search(match[0]) or "[redacted" in match[group]:  # already masked, as a known secret
        return match[0]
    return f"{match[0][:start]}{_mask(match[group])}{match[0][end:]}"


def _says(pattern: re.Pattern[str] | None, text: Any) -> bool:
    return pattern is not None and isinstance(text, str) and pattern.search(text) is not None


def _parts(record: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The tables in a list of a step; empty where it has no such list."""
    items = record.get(name)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _unread(record: dict[str, Any]) -> Iterator[str]:
    """The unparsable answers of a step or an event."""
    for answer in (record, *_parts(record, "answers")):
        if answer.get("failure") and isinstance(answer.get("raw"), str):
            yield answer["raw"]


def _actions(record: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each table that may hold an action, with its index: the step or event itself, then its actions."""
    index = record.get("index")
    yield index if isinstance(index, int) else 0, record
    yield from enumerate(_parts(record, "actions"))


def _texts(value: Any) -> dict[str, bool]:
    """The texts in a JSON value, and which are typed: of our own actions, and of calls in the model's own form."""
    texts: dict[str, bool] = {}
    _gather(value, False, texts)
    return texts


def _gather(value: Any, is_typed: bool, texts: dict[str, bool]) -> None:
    if isinstance(value, str):
        texts[value] = is_typed or texts.get(value, False)
    elif isinstance(value, dict):
        types = "type" in (value.get("type"), value.get("action"))
        for name, item in value.items():
            _gather(item, types and name == "text", texts)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _gather(item, False, texts)


def _replaced(value: Any, texts: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return texts[value]
    if isinstance(value, dict):
        return {key: _replaced(item, texts) for key, item in value.items()}
    return [_replaced(item, texts) for item in value] if isinstance(value, list | tuple) else value
