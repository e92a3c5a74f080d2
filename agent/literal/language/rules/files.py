"""Builders for folders and files, for writing and saving texts, and for calculations."""

import re

from agent.literal.goals import Calculate, Goal, MakeFolder, Rename, ReplaceText, SaveAs, Transfer, Trash, WriteFile
from agent.literal.language.rules.keyboard import text_to_type
from agent.literal.language.sentences import NotUnderstoodError, Part
from agent.literal.language.table import Groups, fragment
from agent.literal.language.targets import picks_one, place_name, read_target, split_list
from agent.literal.vocabulary import lexicon
from agent.literal.vocabulary.numbers import expression_of

_KIND = rf"(?:{fragment('folder')}|(?:text )?file|document|picture|image|photo|note)"
#: An exact file or folder: a quotation, a name with an extension, a path.
_SURELY_A_FILE = re.compile(r"\x00\d+\x00|\S*[\w)]\.(?!\d+$)[A-Za-z][A-Za-z0-9]{0,6}|(?:~|\.{0,2}/)\S+")
_IT = ("it", "this", "that")
_FOLDERS = "documents|downloads|pictures|music|videos|desktop|home|public|templates|trash"
_MACHINE = re.compile(r"(?i)computer|pc|laptop|machine|system|device")
#: Names that mean any text editor, with an empty page.
_ANY_EDITOR = re.compile(
    r"(?i)(?:(?:new |blank |empty )?(?:document|file|text file)|(?:new )?notes?|(?:text )?editor)?"
)
_ARTICLE = re.compile(r"(?i)^(?:(?:the|a|an|my|this|that) )+")
#: Words that begin a place or time, not a folder's name.
_NO_NAME = re.compile(r"(?i)(?:in|inside|within|on|under|at|for|of|with|and|like|to|from|there|somewhere|here)(?: |$)")
#: Words that are rare in unquoted names and usually give a place, a manner or another action, or begin a description.
_SAYS_MORE = re.compile(
    r"(?i)(?-i:^(?:the|an?|another|some|any|same|its|their|this|that|these|those|one of|something) \S)"
    r"|(?:^|\s)(?:in|into|inside|within|on|onto|to|from|under|next|beside|beneath|with|without|then|also|instead|please"
    r"|it|my|your|where|which|that|because|and|using|via|through|by|as|there|here)(?:\s|$)|[,*?]"
    r"|\b(?:no wait|sorry|oops|i mean|replacing|upper ?case|lower ?case|today)\b|^(?:called|named)$"
)
#: Folders, formats and manners after "save as" and "save to", which are no names.
_NO_FILE = re.compile(
    r"(?i)documents|downloads|pictures|music|videos|desktop|home|usual|always|pdf|(?:plain )?text|html|csv|png|jpe?g|"
    r"odt|docx|utf-?8|template|default|new|copy|(?:a |the )?draft no .+"
)
_VAGUE = re.compile(
    r"(?i)(?:.*\b)?(?:files|folders|things?|stuff|contents?|documents|pictures|downloads|data|junk|disk|junk files|"
    r"home|system)"
)


def is_file(name: str) -> bool:
    """Return whether a name is certainly a file's or folder's: it has an extension, or is a path."""
    return _SURELY_A_FILE.fullmatch(name) is not None


def _make_folder(part: Part, match: Groups) -> list[Goal]:
    name, place = match["name"], match["where"]
    if not place:
        name, place = _with_place(name)
    if _NO_NAME.match(name):
        raise NotUnderstoodError("I do not know what to call the folder: “create a folder called X in Y”.")
    items = split_list(name)[0] if match["several"] else [name]
    return [MakeFolder(_file_name(part, item), _where(part, place)) for item in items]


def _rename(part: Part, match: Groups) -> list[Goal]:
    old, place = _with_place(match["old"])
    new, new_place = (match["new"], "") if place else _with_place(match["new"])
    return [Rename(_named(part, old), _file_name(part, new), _where(part, place or new_place))]


def _trash(part: Part, match: Groups) -> list[Goal] | None:
    what, place = _with_place(match["what"])
    goals: list[Goal] = []
    for item in split_list(what)[0]:
        bare = _without_kind(item)
        if not (bare in _IT or _SURELY_A_FILE.fullmatch(bare) or match["trash"] or bare != _ARTICLE.sub("", item)):
            return None
        if _VAGUE.fullmatch(bare) and not re.match(rf"(?:the )?{_KIND} ", item, re.IGNORECASE):
            raise NotUnderstoodError(
                f"I delete nothing that is not named: which file or folder is “{part.shown(item)}”?"
            )
        goals.append(Trash(_named(part, item), _where(part, place, home="~")))
    return goals


def _transfer(part: Part, match: Groups) -> list[Goal] | None:
    """ "move plan.txt into Documents": only for what surely is a file or folder."""
    what, place = _with_place(match["what"])
    to = match["to"]
    named = [(_without_kind(item), item) for item in split_list(what)[0]]
    it_moves = part.it_is_file and len(named) == 1 and named[0][0] in _IT
    if not it_moves and not all(
        _SURELY_A_FILE.fullmatch(bare) or bare != _ARTICLE.sub("", item) for bare, item in named
    ):
        return None
    into_folder = re.search(rf"{fragment('folder')}|\b(?:{_FOLDERS})\b|/", part.shown(to), re.IGNORECASE)
    if (
        match["verb"].casefold() == "put"
        and not into_folder
        and not any(is_file(part.shown(bare)) for bare, _ in named)
    ):
        return None  # "put 'Anna' in Name"
    it = part.it if re.fullmatch(r"it|this|that|there", to, re.IGNORECASE) else ""
    folder = it or _where(part, to) or "~"
    _file_name(part, it or re.sub(r"^(?:the|my) ", "", to, flags=re.IGNORECASE))
    copy = match["verb"].casefold() == "copy"
    return [Transfer(_named(part, item), folder, _where(part, place, home="~"), copy) for _, item in named]


def _replace_text(part: Part, match: Groups) -> list[Goal] | None:
    old, new = part.quotation(match["old"]) or "", part.quotation(match["new"]) or ""
    editors = ("", "text", "document", "file", *lexicon.config()["applications"]["editors"])
    if place_name(part, match["editor"]).casefold() not in editors:
        return None
    return [ReplaceText(old, new, all=bool(match["all"] or match["everywhere"]))] if old else None


def _write(part: Part, match: Groups) -> list[Goal] | None:
    editor = place_name(part, match["editor"]) if match["editor"] else ""
    if editor.casefold() in ("it", "this", "there") and part.it_is_open:
        editor = part.it
    if _SURELY_A_FILE.fullmatch(editor) and not match["name"]:
        if not re.match(r"(?:write|type|save)\b", part.text, re.IGNORECASE):
            raise NotUnderstoodError(f"I only write new files: open “{editor}” first, and say where to type.")
        return _write(part, {**match, "name": match["editor"], "editor": ""})
    if match["editor"] and editor.casefold() not in lexicon.config()["applications"]["editors"]:
        return None
    named = "" if _ANY_EDITOR.fullmatch(editor) else editor
    save_as = _saved_name(part, match["name"], match["where"]) if match["name"] else ""
    return [WriteFile(text_to_type(part, match["text"], part.text), save_as, named)]


def _save(part: Part, match: Groups) -> list[Goal]:
    return [SaveAs(_saved_name(part, match["name"], match["where"]) if match["name"] else "")]


def _calculate(part: Part, match: Groups) -> list[Goal] | None:
    what, calculator = match["what"], ""
    if found := re.fullmatch(r"(?i)(?P<what>.+) (?:in|with|using|on) (?:the |a |my )?(?P<calculator>.+)", what):
        what, calculator = found["what"], part.shown(found["calculator"])
    expression = expression_of(part.shown(what))
    if expression is None:
        return None
    return [Calculate(expression, "" if calculator.casefold() == "calculator" else calculator)]


def _where(part: Part, text: str, home: str = "") -> str:
    """Return a folder's name; "" for the file manager, which is used anyway; `home` for the home folder."""
    if text.casefold() in (*_IT, "there") and part.it:
        return part.it
    bare = re.sub(r"^(?:the |my )?(?:folder|directory) (?!of )(?=\S)", "", text, flags=re.IGNORECASE)
    name = place_name(part, bare) if bare else ""
    if name.casefold() in ("home", "home folder", "home directory"):
        return home
    return "" if name.casefold() in lexicon.config()["applications"]["file_managers"] else name


def _without_kind(text: str) -> str:
    bare = _ARTICLE.sub("", text.strip())
    bare = re.sub(rf"^{_KIND} (?={fragment('named')}|\S){fragment('named')}?", "", bare, count=1)  # no "File System"
    return re.sub(rf" (?:{fragment('folder')}|file)$", "", bare, flags=re.IGNORECASE)


def _file_name(part: Part, text: str) -> str:
    name = part.shown(text)
    if "\x00" in text and part.quotation(text) is None:
        raise NotUnderstoodError(f"I do not understand “{name}”: the name is in quotes, and more stands beside it.")
    if "\x00" not in text and _SAYS_MORE.search(name):
        raise NotUnderstoodError(f"I do not know whether “{name}” is all one name: put the name in quotation marks.")
    if not name or len(name) > 255 or "\n" in name:
        raise NotUnderstoodError("I do not understand that name of a file or folder.")
    return name


def _named(part: Part, text: str) -> str:
    """Return the name of a file or folder; "it" is the last one."""
    bare = _without_kind(text)
    if bare.casefold() in _IT:
        name = read_target(part, bare).name
        if not part.it_is_file:
            raise NotUnderstoodError(f"I do not know whether “{name}” is a file or folder: say its name.")
        return name
    if bare != text and (picks_one(bare) or _MACHINE.fullmatch(bare)):  # "the old file", but not "old"
        raise NotUnderstoodError(f"I do not know which “{part.shown(text)}” is meant: say its name.")
    return _file_name(part, bare)


def _with_place(text: str, words: str = r"in|inside|within|on(?= the| my)|under|from") -> tuple[str, str]:
    """Split "X in Y" into the two; the second is "" if there is no place."""
    found = re.fullmatch(rf"(?P<what>.+) (?:{words}) (?P<where>.+)", text, re.IGNORECASE)
    return (found["what"], found["where"]) if found else (text, "")


def _saved_name(part: Part, name: str, place: str) -> str:
    if not place and part.quotation(name) is None:
        name, place = _with_place(name, r"in|to|into|on(?= the| my)|under")
    bare = re.sub(r"^(?:(?:(?:the|a) )?file )?(?:called |named )?", "", name, flags=re.IGNORECASE)
    shown, folder = _file_name(part, bare or name), _where(part, place)
    if "\x00" not in name and _NO_FILE.fullmatch(shown):
        raise NotUnderstoodError(f"I do not know whether “{shown}” is a name to save under: put it in quotation marks.")
    return f"{folder.rstrip('/')}/{shown}" if folder else shown
