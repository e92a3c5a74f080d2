"""Finds typed text in the answers of models, and lists the forms in which a secret may come back in other texts."""

import html
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

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
