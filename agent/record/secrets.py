"""The forms of secrets: how a typed text may come back in other texts, and single keys."""

import html
import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

from agent.core.actions import HoldKeys, KeyDown, KeyUp, PressKeys
from agent.core.keys import MODIFIERS, UnknownKeyError, canonical_key
from agent.record.records import read_action
from agent.safety.text import spelled


def forms(secret: str) -> Iterator[str]:
    """Yield a text as it is, and as written in JSON (also within JSON), XML, code, addresses and shell commands."""
    yield secret
    for ascii_only in (False, True):
        once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
        yield once.replace("/", "\\/")
    for quote_sign in "'\"":  # as a list of keys
        for comma in (",", ", "):
            yield f"{quote_sign}{comma}{quote_sign}".join(secret)
    # In XML, with any of the ways to write a quote.
    escaped = html.escape(secret, quote=False)
    for double in ('"', "&quot;", "&#34;"):
        for single in ("'", "&#x27;", "&#39;", "&apos;"):
            yield escaped.replace('"', double).replace("'", single)
    code = secret.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
    yield from (code, code.replace("'", "\\'"), code.replace('"', '\\"'))
    yield secret.encode("unicode_escape").decode("ascii")
    yield secret.replace("'", "'\\''")  # in a shell's quotes
    for safe in ("", "/", "!*'()", "-_.!~*'()"):
        percent = quote(secret, safe=safe, errors="replace")
        yield from (percent, re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), percent))
    yield quote_plus(secret, errors="replace")


# Secrets that are pressed key by key: a letter alone may be part of any word, so it is masked in its own step only

#: What may name a key: a word by itself, or parts of one between hyphens; no part of a path, a number or an escape.
_WORD = r"(?<![\w/.\\])(?P<word>\w{1,20}(?:-\w{1,20})*)(?![\w/]|[.-]\w)"
_PART = re.compile(r"[^\W_]+")
#: A sign that stands alone, such as in quotes or after "press": elsewhere it may be punctuation.
_SIGN = r"""(?:(?<=["'`“‘>+(=\[])|(?<=\bpress ))[^\w\s](?=["'`”’<)}\],]|\s|$)"""
#: Minimum length of a partly typed secret to mask in its own step.
_SHORTEST = 2
_WHITE = "\n\t"
_KEY = "k"  # one character: the length of a key's name would reveal it


class SecretKeys:
    """The keys that entered secrets, by step and by place among its actions."""

    def __init__(self) -> None:
        self._pressed: dict[tuple[Any, int], tuple[frozenset[str], str]] = {}
        self._step: Any = None
        self._targets: list[Any] = []  # that were decided in this step

    def at(self, step: Any, targets: Any = None) -> None:
        """Begin a step, with the actions that were decided in it if they are known."""
        self._targets = targets if isinstance(targets, list) else self._targets if step == self._step else []
        self._step = step

    def learn(self, index: int, target: Any) -> None:
        """Take note of an action that goes into a field for secrets, and of the keys right after it in the answer."""
        for number, one in enumerate((target, *self._targets[index + 1 :]), index):
            keys, letters = _entered(one)
            if not keys:
                return
            changed, _ = self._pressed.get((self._step, number), (frozenset(), ""))  # the model's original keys
            self._pressed[self._step, number] = (keys | changed, letters)

    def releases(self, target: Any) -> bool:
        """Whether an action releases a key of a secret; a release has no field."""
        keys, _ = _entered(target)
        return isinstance(target, dict) and target.get("type") == "key_up" and bool(keys) and keys <= self._keys

    @property
    def _keys(self) -> frozenset[str]:
        return frozenset(key for keys, _ in self._pressed.values() for key in keys)

    @property
    def words(self) -> Iterator[str]:
        """The words spelled by keys that came right after each other."""
        word, last = "", None
        for (step, index), (_, letters) in self._pressed.items():
            if step != last and not (index == 0 and isinstance(step, int) and step - 1 == last):
                yield word
                word = ""
            word, last = word + letters, step
        yield word

    def masked(self, text: str, mask: Callable[[str], str]) -> str:
        """Mask the keys of secrets in a text of the step, if the step pressed any."""
        if not any(step == self._step for step, _ in self._pressed):
            return text
        keys = self._keys
        begun = [word[:end] for word in self.words for end in range(len(word), _SHORTEST - 1, -1)]
        spelled_out = [rf"(?<!\w)(?P<begun>{'|'.join(map(re.escape, begun))})(?!\w)"] if begun else []
        pattern = re.compile("|".join([*spelled_out, _WORD, _SIGN]), re.IGNORECASE)

        def change(match: re.Match[str]) -> str:
            found = match.groupdict()
            if found.get("begun") is not None:
                return mask(match[0])
            if _is_one(match[0], keys):
                return mask(_KEY)
            return _PART.sub(lambda part: mask(_KEY) if _is_one(part[0], keys) else part[0], match[0])

        return pattern.sub(change, text)


def _entered(target: Any) -> tuple[frozenset[str], str]:
    """The keys of an action that enter visible characters, under all their names, and those characters."""
    action = read_action(target)
    keys = action.keys if isinstance(action, PressKeys | HoldKeys | KeyDown | KeyUp) else ()
    letters = spelled(PressKeys(keys)).strip(_WHITE)
    if not letters:
        return frozenset(), ""
    names = frozenset(name.casefold() for name in (*keys, *letters) if name not in MODIFIERS)
    return names, "" if isinstance(action, KeyUp) else letters


def _is_one(name: str, keys: frozenset[str]) -> bool:
    try:
        return bool({name.casefold(), canonical_key(name).casefold()} & keys)
    except UnknownKeyError:
        return False
