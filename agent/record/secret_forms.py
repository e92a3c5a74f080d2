"""How a secret is written: where models write what is typed, and the forms in which that comes back in other texts."""

import html
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

#: Names that calls have for what is typed.
_NAMES = "text|content|value|input|string|chars|keys|message|password"
#: Names of calls that type.
_CALLS = r"(?:type|write|typewrite|send_keys|fill|paste|input)(?:_?text|_?string|write)?"
_STRING = r"""(?:"(?P<double>(?:\\.|[^"\\])*)"|'(?P<single>(?:\\.|[^'\\])*)'|`(?P<back>(?:\\.|[^`\\])*)`)"""
#: Where an answer holds what is typed, whatever its syntax: content='...', "text": "...", type("..."), and in XML.
_TYPED = (
    re.compile(rf"""\b(?:{_NAMES})["']?\s*[:=]\s*{_STRING}""", re.DOTALL | re.IGNORECASE),
    re.compile(rf"\b{_CALLS}\s*\(\s*(?:[\w.\[\]]+\s*,\s*)?{_STRING}", re.DOTALL | re.IGNORECASE),
    re.compile(
        rf"""<(?:parameter|arg|param)(?:=|\s+name=)["']?(?:{_NAMES})["']?\s*>(?P<xml>.{{0,1000}}?)</""",
        re.DOTALL | re.IGNORECASE,
    ),
    re.compile(rf"<(?P<tag>{_NAMES})>(?P<xml>.{{0,1000}}?)</(?P=tag)>", re.DOTALL | re.IGNORECASE),
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r"}
#: An answer longer than this is not searched for calls: no typed text is that far in.
_MOST_CHARS = 50_000


def typed_in(answer: str) -> Iterator[str]:
    """What a model's answer may type, however it writes calls, with its escapes resolved."""
    answer = answer[:_MOST_CHARS]
    for text in (answer, _unescaped(answer)) if '\\"' in answer else (answer,):  # JSON in a string of JSON
        for pattern in _TYPED:
            for match in pattern.finditer(text):
                groups = match.groupdict()
                if (written := groups.get("xml")) is not None:
                    yield html.unescape(written.strip())
                    continue
                written = next((groups[name] for name in ("double", "single", "back") if groups.get(name)), "")
                yield _unescaped(written)


def _unescaped(written: str) -> str:
    def char(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        return chr(int(code, 16)) if code else _LETTERS.get(match[3], match[3])

    return _ESCAPE.sub(char, written)


def forms(secret: str) -> Iterator[str]:
    """A text as it is, and as it stands in JSON (also within JSON), XML, code, addresses and shell commands."""
    yield secret
    for ascii_only in (False, True):
        once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
        yield once.replace("/", "\\/")
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
