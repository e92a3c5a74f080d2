"""Hides quotations and known names from the grammar, so that none of their words is parsed as an instruction."""

import re

#: Opening quotation marks and their closing marks: English, German, French, Swedish, code.
_PAIRS = {
    "'": "'", '"': '"', "“": "”", "‘": "’", "`": "`",
    "«": "»", "»": "«", "„": "“”", "‚": "‘’", "‹": "›", "›": "‹", "”": "”",
}  # fmt: skip
_OPENING = re.compile("(?<![^\\W_])'|[\"“‘`«»„‚‹›”]")


def _closing(ends: str) -> re.Pattern[str]:
    return re.compile("|".join(rf"{end}(?![^\W_])" if end in "'’" else end for end in ends))


_CLOSING = {mark: _closing(ends) for mark, ends in _PAIRS.items()}
_MARK = re.compile("[\x00\x01](\\d+)[\x00\x01]")
#: The text before a part of an instruction.
_BEGINS = re.compile(r"(?i)(?:^|[,.;:!?\n]|\b(?:and|then|but|please|to))\s*$")
_SWITCHES = re.compile(r"(?i)\b(?:turn|switch|toggle|put|flip)\s*$")
_ON_OFF = re.compile(r"(?i)(?:on|off)\b")
#: A text of one hidden quotation or name and nothing else.
_ONE = re.compile("\\s*([\x00\x01])(\\d+)\\1\\s*")


def hide_quotes(text: str, quoted: list[str]) -> str:
    """Replace each quotation by a placeholder and append it to `quoted`.

    An apostrophe within a word neither opens nor closes a quotation. An unpaired mark is kept.
    """
    kept, at = "", 0
    unpaired: set[str] = set()  # marks without a closing mark, so that long texts are searched only once
    for opening in _OPENING.finditer(text):
        mark = opening[0]
        if opening.start() < at or mark in unpaired:
            continue
        closing = _CLOSING[mark].search(text, opening.end())
        if closing is None:
            unpaired.add(mark)
            continue
        kept += f"{text[at : opening.start()]}\x00{len(quoted)}\x00"
        quoted.append(text[opening.end() : closing.start()])
        at = closing.end()
    return kept + text[at:]


def hide_names(text: str, names: re.Pattern[str], verbs: re.Pattern[str], quoted: list[str]) -> str:
    """Replace each known name by a placeholder and append it to `quoted` as written.

    A name that begins with a verb is not hidden at the start of an instruction: "and don't save" is a command.
    """

    def hide(found: re.Match[str]) -> str:
        before = text[: found.start()]
        if _ON_OFF.match(text[found.end() :].lstrip()):  # "Do Not Disturb on"
            return hide_rest(found)
        if (_BEGINS.search(before) and verbs.match(found[0])) or (
            _SWITCHES.search(before) and _ON_OFF.match(found[0])  # "turn on screen keyboard"
        ):
            first, space, rest = found[0].partition(" ")
            return first + space + names.sub(hide_rest, rest)
        return hide_rest(found)

    def hide_rest(found: re.Match[str]) -> str:
        quoted.append(found[0])
        return f"\x01{len(quoted) - 1}\x01"

    return names.sub(hide, text)


def show(text: str, quoted: list[str]) -> str:
    """Return a text with its quotations and names restored, without the quotation marks."""
    return _MARK.sub(lambda match: quoted[int(match[1])], text)


def show_names(text: str, quoted: list[str]) -> str:
    """Return a text with its names restored; its quotations stay hidden."""
    return re.sub("\x01(\\d+)\x01", lambda match: quoted[int(match[1])], text)


def only_quotation(text: str, quoted: list[str], *, names: bool = False) -> str | None:
    """Return the quotation if it is the whole text, else None. With `names`, a hidden name counts too."""
    match = _ONE.fullmatch(text)
    return quoted[int(match[2])] if match and (names or match[1] == "\x00") else None
