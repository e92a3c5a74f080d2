"""The forms of secrets: how answers write typed text, how it may come back in other texts, and single keys."""

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

#: Names of the arguments that hold typed text.
_NAMES = r"(?:\w{1,20}_)?(?:text|content|value|input|string|chars|keys|message|password|arg|args|params)(?:_\w{1,20})?"
#: Names of calls that type, or that fill the clipboard for a paste.
_CALLS = r"(?:type|write|typewrite|send_keys|fill|paste|input|copy)(?:_?text|_?string|write)?"
_STRING = (
    r"""[rbfu]{0,2}(?:\"{3}(?P<long>.*?)\"{3}|'{3}(?P<long_single>.*?)'{3}|"(?P<double>(?:\\.|[^"\\])*)\""""
    r"""|'(?P<single>(?:\\.|[^'\\])*)'|`(?P<back>(?:\\.|[^`\\])*)`|[“‘](?P<curly>[^”’]*)[”’])"""
)
_QUOTED = ("long", "long_single", "double", "single", "back", "curly")
#: Arguments before the typed text: names, numbers, and one other text.
_BEFORE = r"""(?:[\w.\[\]]{1,40}\s*,\s*|["'][^"'\n]{0,200}["']\s*,\s*)?"""
#: Where an answer holds typed text, in every syntax: content='...', "text": "...", type("..."), and in XML.
_TYPED = (
    re.compile(rf"""\b(?:{_NAMES})["']?\s*[:=]\s*\[?\s*{_STRING}""", re.DOTALL | re.IGNORECASE),
    re.compile(rf"\b{_CALLS}\s*\(\s*{_BEFORE}{_STRING}", re.DOTALL | re.IGNORECASE),
    re.compile(
        rf"""<(?:parameter|arg|param)(?:=|\s+name=)["']?(?:{_NAMES})["']?\s*>(?P<xml>.{{0,1000}}?)</""",
        re.DOTALL | re.IGNORECASE,
    ),
    re.compile(
        rf"<(?P<tag>{_NAMES}|arg_value|argument|type)>(?P<xml>.{{0,1000}}?)</(?P=tag)>", re.DOTALL | re.IGNORECASE
    ),
    # without quotes: to the end of the line, in brackets, or as a shell's command
    re.compile(
        rf"""^[ \t]*(?:{_NAMES}|action input|type)[ \t]*[:=][ \t]*(?P<bare>[^\s"'`{{\[(<][^\n]{{0,500}})$""",
        re.MULTILINE | re.IGNORECASE,
    ),
    # fields between tabs
    re.compile(rf"\t(?:{_NAMES})[ ]*[:：][ ]*(?P<bare>[^\t\n]{{1,500}})", re.IGNORECASE),
    re.compile(r"\btype[ \t]*(?:\[[^\]\n]{0,200}\][ \t]*)?\[(?P<bare>[^\]\n]{1,500})\]", re.IGNORECASE),
    re.compile(
        r"""\b(?:xdotool|ydotool)[ \t]+type[ \t]+(?:--?\w+[ \t]+(?:\d+[ \t]+)?)*["']?(?P<bare>[^"'\n]{1,500})""",
        re.IGNORECASE,
    ),
)
#: Single characters one after the other, as keys that are pressed.
_SPELLED = re.compile(r"""\[\s*((?:(["'])[^"'\\\n]\2\s*,\s*){2,200}(["'])[^"'\\\n]\3)\s*,?\s*\]""")
_LETTER = re.compile(r"""(["'])([^"'\\\n])\1""")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r"}
#: Most characters of an answer to search for typed text; typed text comes earlier.
_MOST_CHARS = 50_000


def typed_in(answer: str) -> Iterator[str]:
    """Yield texts that an answer may type, in any call syntax, with escapes resolved."""
    answer = answer[:_MOST_CHARS]
    for text in (answer, _unescaped(answer)) if '\\"' in answer else (answer,):  # JSON in a string of JSON
        for pattern in _TYPED:
            for match in pattern.finditer(text):
                groups = match.groupdict()
                if (written := groups.get("xml") or groups.get("bare")) is not None:
                    yield html.unescape(written.strip())
                    continue
                written = next((groups[name] for name in _QUOTED if groups.get(name)), "")
                yield _unescaped(written)
        for match in _SPELLED.finditer(text):
            yield "".join(letter[2] for letter in _LETTER.finditer(match[1]))


def _unescaped(written: str) -> str:
    def char(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        return chr(int(code, 16)) if code else _LETTERS.get(match[3], match[3])

    return _ESCAPE.sub(char, written)


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
