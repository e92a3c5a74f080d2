"""Inserts an entry into the text of a settings file (JSON with comments, TOML, YAML); all else stays as it is."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|[{}\[\]:,]|[^\s{}\[\]:,"/]+|/', re.DOTALL)


class SettingsError(ValueError):
    """The file is not shaped like settings."""


def read_json(text: str) -> Any:
    """Parse JSON with comments and trailing commas; an empty text is an empty object. Raises ValueError."""
    pieces = [sign for _, sign in _tokens(text)]
    kept = [
        one for one, after in zip(pieces, [*pieces[1:], ""], strict=False) if not (one == "," and after in ("}", "]"))
    ]
    return json.loads(" ".join(kept)) if kept else {}


def insert_json(text: str, keys: Sequence[str], name: str, entry: Any) -> str:
    """Return the text with `name: entry` first in the object at `keys`, which is made if it is missing."""
    if not text.strip():
        document: Any = {name: entry}
        for key in reversed(keys):
            document = {key: document}
        return text + json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    at, found = _object(text, keys)
    for key in reversed(keys[found:]):
        name, entry = key, {name: entry}
    unit = _indent(text)
    written = json.dumps({name: entry}, indent=unit, ensure_ascii=False)[1:-1].rstrip()
    body = written.replace("\n", "\n" + unit * found)
    follows = next((sign for place, sign in _tokens(text) if place >= at), "}")
    return f"{text[:at]}{body}{'' if follows == '}' else ','}{text[at:]}"


def insert_toml(text: str, keys: Sequence[str], name: str, entry: dict[str, Any]) -> str:
    """Return the text with a table at its end."""
    lines = [f"[{'.'.join(keys)}.{name}]", *(f"{key} = {_toml(value)}" for key, value in entry.items())]
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return f"{text}{gap}" + "\n".join(lines) + "\n"


def insert_yaml(text: str, keys: Sequence[str], name: str, entry: dict[str, Any]) -> str:
    """Return the text with a member of a mapping at the top level, which is made if it is missing."""
    (key,) = keys
    heading = re.search(rf"^{re.escape(key)}:[ \t]*(#.*)?\r?$\n?", text, re.MULTILINE)
    if heading is None:
        if re.search(rf"^{re.escape(key)}:", text, re.MULTILINE):
            raise SettingsError(f"{key} is written on one line")
        gap = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{gap}{key}:\n{_yaml(name, entry, '  ')}"
    below = re.match(r"([ \t]+)\S", text[heading.end() :])
    gap = "" if heading[0].endswith("\n") else "\n"
    added = f"{gap}{_yaml(name, entry, below[1] if below else '  ')}"
    if "\r\n" in text:
        added = added.replace("\n", "\r\n")
    return f"{text[: heading.end()]}{added}{text[heading.end() :]}"


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    for match in _TOKEN.finditer(text):
        if not match[0].startswith(("//", "/*")):
            yield match.start(), match[0]


def _object(text: str, keys: Sequence[str]) -> tuple[int, int]:
    """Return the offset after the opening brace of the deepest existing object on the path `keys`, and its depth.

    Raises SettingsError: the text is not an object.
    """
    path: list[str] = []  # the keys of the objects around, "" for lists
    found = place = -1
    last = ""
    for at, sign in _tokens(text):
        if sign in "{[":
            path.append(json.loads(last) if last.startswith('"') else "")
            inside = path[1:]
            if sign == "{" and len(inside) > found and inside == list(keys)[: len(inside)]:
                found, place = len(inside), at + 1
        elif sign in "}]":
            path.pop()
        if sign != ":":
            last = sign if sign.startswith('"') else ""
    if place < 0:
        raise SettingsError("it is no object")
    return place, found


def _indent(text: str) -> str:
    """Return the indentation that the text uses; two spaces if it uses none."""
    match = re.search(r"\{[^\S\n]*(?://[^\n]*)?\n([ \t]+)\S", text)
    return match[1] if match else "  "


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)  # strings, booleans and lists of strings are written alike


def _yaml(name: str, entry: dict[str, Any], indent: str) -> str:
    lines = [f"{indent}{name}:", *(f"{indent}{indent}{key}: {json.dumps(value)}" for key, value in entry.items())]
    return "\n".join(lines) + "\n"
