"""Builders for folders and files, for writing and saving texts, and for calculations."""

import re

from agent.literal.goals import Calculate, Goal, MakeFolder, Rename, ReplaceText, SaveAs, Transfer, Trash, WriteFile
from agent.literal.language.rules.base import Groups, builders, fragment, text_to_type
from agent.literal.language.sentences import NotUnderstoodError, Part
from agent.literal.language.targets import place_name, read_target, split_list
from agent.literal.vocabulary import lexicon
from agent.literal.vocabulary.numbers import expression_of

_KIND = rf"(?:{fragment('folder')}|(?:text )?file|document|picture|image|photo|note)"
#: An exact file or folder: a quotation, a name with an extension, a path.
_SURELY_A_FILE = re.compile(r"\x00\d+\x00|\S*[\w)]\.(?!\d+$)[A-Za-z][A-Za-z0-9]{0,6}|(?:~|\.{0,2}/)\S+")
_SUMS = {
    r"(?:add|sum(?: up)?) (?P<first>.+?) (?:and|to) (?P<second>.+)": "+",
    r"multiply (?P<first>.+?) (?:by|with|and) (?P<second>.+)": "*",
    r"divide (?P<first>.+?) by (?P<second>.+)": "/",
    r"subtract (?P<first>.+?) from (?P<second>.+)": "from",
}
_ARTICLE = re.compile(r"^(?:(?:the|a|an|my|this|that) )+", re.IGNORECASE)
#: Words that begin a place or time, not a folder's name.
_NO_NAME = re.compile(
    r"(?:in|inside|within|on|under|at|for|with|and|to|from|there|somewhere|here)(?: |$)", re.IGNORECASE
)
#: Words that are rare in unquoted names and usually give a place, a manner or another action.
_SAYS_MORE = re.compile(
    r"(?:^|\s)(?:in|into|inside|within|on|onto|to|from|under|next|beside|beneath|with|without|then|also|instead|please"
    r"|it|my|your|where|which|that|because)(?:\s|$)",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"(?:.*\b)?(?:files|folders|things?|stuff|contents?|documents|pictures|downloads|data|junk|disk|junk files|home|"
    r"system)",
    re.IGNORECASE,
)


def _make_folder(part: Part, match: Groups) -> list[Goal]:
    name, where = match["name"], match["where"]
    if (
        not where
        and "\x00" in name
        and (found := re.fullmatch(r"(?P<name>.*\x00) (?:in|inside|within|on|at|under) (?P<where>.+)", name))
    ) or (
        not where
        and (
            found := re.fullmatch(
                r"(?P<name>.+) (?:in|inside|within|on(?= the| my)|under) (?P<where>.+)", name, re.IGNORECASE
            )
        )
    ):
        name, where = found["name"], found["where"]
    if _NO_NAME.match(name):
        raise NotUnderstoodError("I do not know what to call the folder: “create a folder called X in Y”.")
    items = split_list(name)[0] if match["several"] else [name]
    return [MakeFolder(_file_name(part, item), _where(part, where)) for item in items]


def _rename(part: Part, match: Groups) -> list[Goal]:
    old, where = match["old"], ""
    if found := re.fullmatch(r"(?P<old>.+) (?:in|inside|within|on(?= the| my)|from) (?P<where>.+)", old, re.IGNORECASE):
        old, where = found["old"], _where(part, found["where"])
    new = match["new"]
    if not where and (
        found := re.fullmatch(r"(?P<new>.+) (?:in|inside|within|on(?= the| my)) (?P<where>.+)", new, re.IGNORECASE)
    ):
        new, where = found["new"], _where(part, found["where"])
    if old.casefold() in ("it", "this", "that"):
        return [Rename(read_target(part, old).name, _file_name(part, new), where)]
    return [Rename(_file_name(part, _without_kind(old)), _file_name(part, new), where)]


def _trash(part: Part, match: Groups) -> list[Goal] | None:
    what, where = match["what"], ""
    surely = bool(match["trash"])
    place = r"(?P<what>.+) (?:in|inside|within|on(?= the| my)|from) (?P<where>.+)"
    if found := re.fullmatch(place, what, re.IGNORECASE):
        what, where = found["what"], _where(part, found["where"], home="~")
    goals: list[Goal] = []
    for item in split_list(what)[0]:
        bare = _without_kind(item)
        if bare.casefold() in ("it", "this", "that"):
            goals.append(Trash(read_target(part, bare).name, where))
            continue
        named = _SURELY_A_FILE.fullmatch(bare) or surely or bare != _ARTICLE.sub("", item)
        if not named:
            return None
        if (
            not _SURELY_A_FILE.fullmatch(bare)
            and _VAGUE.fullmatch(bare)
            and not re.match(rf"(?:the )?{_KIND} ", item, re.IGNORECASE)
        ):
            raise NotUnderstoodError(
                f"I delete nothing that is not named: which file or folder is “{part.shown(item)}”?"
            )
        goals.append(Trash(_file_name(part, bare), where))
    return goals


def _transfer(part: Part, match: Groups) -> list[Goal] | None:
    """ "move plan.txt into Documents": only for what surely is a file or folder."""
    what, where, to = match["what"], "", match["to"]
    if found := re.fullmatch(r"(?P<what>.+) (?:from|in) (?P<where>.+)", what, re.IGNORECASE):
        what, where = found["what"], _where(part, found["where"], home="~")
    named = [(_without_kind(item), item) for item in split_list(what)[0]]
    if not all(_SURELY_A_FILE.fullmatch(bare) or bare != _ARTICLE.sub("", item) for bare, item in named):
        return None
    if match["verb"].casefold() == "put" and re.search(r"\b(?:field|box|editor|document|window)$", to):
        return None
    it = part.it if re.fullmatch(r"it|this|that|there", to, re.IGNORECASE) else ""
    folder = it or _where(part, to) or "~"
    _file_name(part, it or re.sub(r"^(?:the|my) ", "", to, flags=re.IGNORECASE))
    copy = match["verb"].casefold() == "copy"
    return [Transfer(_file_name(part, bare), folder, where, copy) for bare, _ in named]


def _replace_text(part: Part, match: Groups) -> list[Goal]:
    old, new = part.quotation(match["old"]) or "", part.quotation(match["new"]) or ""
    if not old:
        raise NotUnderstoodError("I do not understand which text to replace.")
    return [ReplaceText(old, new, all=bool(match["all"] or match["everywhere"]))]


def _write(part: Part, match: Groups) -> list[Goal] | None:
    editor = place_name(part, match["editor"]) if match["editor"] else ""
    if editor.casefold() in ("it", "this", "there") and part.it_is_open:
        editor = part.it
    if _SURELY_A_FILE.fullmatch(editor) and not match["name"]:
        return _write(part, {**match, "name": match["editor"], "editor": ""})
    if match["editor"] and editor.casefold() not in lexicon.config()["applications"]["editors"]:
        return None
    words = {
        "document",
        "file",
        "note",
        "notes",
        "new document",
        "new file",
        "text file",
        "blank document",
        "empty document",
    }
    named = (
        ""
        if editor.casefold() in words or editor.casefold() in ("text editor", "editor", "new text file", "new note")
        else editor
    )
    save_as = _saved_name(part, match["name"], match["where"]) if match["name"] else ""
    return [WriteFile(text_to_type(part, match["text"], part.text), save_as, named)]


def _save(part: Part, match: Groups) -> list[Goal]:
    return [SaveAs(_saved_name(part, match["name"], match["where"]) if match["name"] else "")]


def _calculate(part: Part, match: Groups) -> list[Goal] | None:
    what, calculator = match["what"], ""
    if found := re.fullmatch(
        r"(?P<what>.+) (?:in|with|using|on) (?:the |a |my )?(?P<calculator>.+)", what, re.IGNORECASE
    ):
        what, calculator = found["what"], part.shown(found["calculator"])
    what = _sum_in_words(part.shown(what))
    expression = expression_of(what)
    if expression is None:
        return None
    return [Calculate(expression, "" if calculator.casefold() == "calculator" else calculator)]


def _sum_in_words(text: str) -> str:
    """Replace the words of "add 5 and 7" or "divide 100 by 4" by signs; return other texts unchanged."""
    for pattern, sign in _SUMS.items():
        if match := re.fullmatch(pattern, text, re.IGNORECASE):
            first, second = match["first"], match["second"]
            return f"{second} - {first}" if sign == "from" else f"{first} {sign} {second}"
    return text


def _where(part: Part, text: str, home: str = "") -> str:
    """Return a folder's name; "" for the file manager, which is used anyway; `home` for the home folder."""
    name = place_name(part, text) if text else ""
    if name.casefold() in ("home", "home folder", "home directory"):
        return home
    return "" if name.casefold() in lexicon.config()["applications"]["file_managers"] else name


def _without_kind(text: str) -> str:
    bare = _ARTICLE.sub("", text.strip())
    bare = re.sub(rf"^{_KIND} (?={fragment('named')}|\S){fragment('named')}?", "", bare, count=1, flags=re.IGNORECASE)
    return re.sub(rf" (?:{fragment('folder')}|file)$", "", bare, flags=re.IGNORECASE)


def _file_name(part: Part, text: str) -> str:
    name = part.shown(text)
    if "\x00" not in text and _SAYS_MORE.search(name):
        raise NotUnderstoodError(f"I do not know whether “{name}” is all one name: put the name in quotation marks.")
    if not name or len(name) > 255 or "\n" in name:
        raise NotUnderstoodError("I do not understand that name of a file or folder.")
    return name


def _saved_name(part: Part, name: str, where: str) -> str:
    if not where and part.quotation(name) is None:
        found = re.fullmatch(r"(?P<name>.+) (?:in|to|into|on(?= the| my)|under) (?P<where>.+)", name, re.IGNORECASE)
        name, where = (found["name"], found["where"]) if found else (name, where)
    shown = _file_name(
        part, re.sub(r"^(?:(?:the|a) )?(?:file )?(?:called |named )?", "", name, flags=re.IGNORECASE) or name
    )
    folder = _where(part, where)
    return f"{folder.rstrip('/')}/{shown}" if folder else shown


BUILDERS = builders(
    _make_folder,
    _rename,
    _trash,
    _transfer,
    _replace_text,
    _write,
    _save,
    _calculate,
)
