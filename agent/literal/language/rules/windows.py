"""Builders for opening things, going to pages, and windows."""

import re
from contextlib import suppress
from dataclasses import replace
from typing import Literal, TypeAlias

from agent.literal.goals import ArrangeWindow, Choose, Click, Close, CloseOthers, Goal, Open, Target, Toggle
from agent.literal.language.sentences import FinalRefusalError, NotUnderstoodError, Part
from agent.literal.language.table import Groups, fragment
from agent.literal.language.targets import picks_one, place_name, read_target, split_list
from agent.literal.vocabulary import lexicon
from agent.literal.vocabulary.places import is_switch, panel_names

_Kind: TypeAlias = Literal["folder", "file", "settings", "application"]
_How: TypeAlias = Literal["focus", "maximize", "unmaximize", "minimize", "fullscreen", "show desktop"]
_APPLICATION = "app|application|program|window|software|tool"
_SETTINGS = "settings|preferences|options|configuration|settings panel|settings page|panel"
_CALLED = r"(?:(?:called|named) )?"
#: Words for the kind of a thing to open.
_KINDS: dict[str, _Kind] = {
    rf"(?:{_SETTINGS}) (?:for|of|about) (?:the |my )?(?P<name>.+)|(?P<before>.+) (?:{_SETTINGS})": "settings",
    rf"(?-i:folder|directory) {_CALLED}(?P<name>.+)|(?P<before>.+) (?:folder|directory)": "folder",
    rf"(?-i:text )?(?-i:file|document) {_CALLED}(?P<name>.+)|(?P<before>.+) (?:file|document)": "file",
    rf"(?-i:{_APPLICATION}) {_CALLED}(?P<name>.+)|(?P<before>.+) (?:{_APPLICATION})": "application",
}
_FILE_NAME = re.compile(r"(?:~|\.{0,2}/)\S.*|[\w ()+-]*[\w)]\.(?!\d+$)[A-Za-z][A-Za-z0-9]{0,6}")
#: A web page by its address. A host alone counts only if the sentence calls it a page or names the browser.
_PAGE = re.compile(
    r"(?i)(?P<called>(?:web ?)?(?:site|page|address) )?(?:(?P<sure>(?:https?://|www\.)\S+"
    r"|(?:localhost|\d{1,3}(?:\.\d{1,3}){3})(?::\d+)?(?:/\S*)?)"
    r"|(?P<host>[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:/\S*)?))"
)
#: A file's kind before its name: "the picture sunset.png".
_KIND_OF_FILE = re.compile(
    r"(?i)(?:text |pdf |word |image |music |sound |log )?(?:file|picture|image|photo|photograph|screenshot|drawing|"
    r"song|track|recording|video|movie|film|clip|pdf|document|spreadsheet|presentation|slides|script|notes?|letter|"
    r"book) (?:called |named )?(?P<name>.+)"
)
#: The folder of a file.
_IN_FOLDER = re.compile(
    r"(?i) (?:in|inside|within|from) (?:.+ (?:folder|directory)"
    r"|(?:the |my )?(?:documents|downloads|pictures|music|videos|desktop|templates|public|home))$"
)
_DIALOG = re.compile(r"(?i)\b(?:dialog|dialogue|box|message|popup)\b")
_GENERIC = re.compile(r"(?i)(?:file|folder|application|app|program|window|something|it all|stuff|things?)s?")
#: "Settings > Power": things to open one after the other.
_PATH = re.compile(r" (?:>|→|->|▸|»|/) ")
#: Shell commands, which are not opened.
_COMMAND = re.compile(r"(?i)[|;<>$]|&&|^(?:sudo|rm|bash|sh|curl|wget)\b|^(?:the )?(?:command|script|following)\b")
_NO_COMMANDS = "I do not run commands (“{}”): name an application, a folder or a file."
_FRONT = re.compile(
    r"(?i)(?:it|this|that)(?: one)?|(?:(?:this|that|the|current|active|front|open) )*"
    r"(?:(?:window|dialog|dialogue|box|message|popup)(?: (?!$)|(?= in| at| on|$)))+(?: ?(?:in|at the) front| ?on top)?"
    r"|the (?:current|active|front|open) one"
)


def _open(part: Part, match: Groups) -> list[Goal]:
    what, place = re.sub(r" (?:up|again)$", "", match["what"]), ""
    found = re.fullmatch(r"(?P<what>.+) (?:with|using|in|inside|within|from) (?P<place>.+)", what, re.IGNORECASE)
    if found is not None and not _IN_FOLDER.search(what):
        what, place = found["what"], place_name(part, found["place"])
    if re.search(rf"(?i)\s{lexicon.verbs()}\s+\S", place):  # "Mousepad, from the Edit menu choose Paste"
        raise NotUnderstoodError(f"I do not understand what “in {place}” adds: say each step by itself.")
    if lexicon.programs_of_kind(place.casefold()) == lexicon.programs_of_kind("terminal") and "\x00" in what:
        raise FinalRefusalError(_NO_COMMANDS.format(part.shown(what)))
    if found := re.fullmatch(r"(?i)(?P<what>.+) (?:in|from) (?:the |my )?(?P<folder>.+?)(?: folder| directory)?", what):
        file = _open_one(part, found["what"], place)
        if isinstance(file, Open) and file.kind == "file":
            return [Open(f"{part.shown(found['folder'])}/{file.name}", "file", place)]
    first, *further = _PATH.split(what)
    items, _ = split_list(first)
    items = items if all(re.search(r"\w", part.shown(item)) for item in items) else [first]
    return [*(_open_one(part, item, place) for item in items), *_clicks(part, further)]


def _clicks(part: Part, items: list[str]) -> list[Goal]:
    return [Click(read_target(part, item)) for item in items]


def _open_one(part: Part, text: str, place: str) -> Goal:
    bare = re.sub(r"^(?:(?:the|a|an|my|your|new|me|another) )+", "", text, flags=re.IGNORECASE)
    bare = "trash" if re.fullmatch(fragment("trash"), bare, re.IGNORECASE) else bare
    if (counted := read_target(part, text, places=False)).ordinal and not counted.role:
        return Click(counted, count=2)
    if re.search(r"(?i)(?:^| )(?:menu|tab|drop-?down|combo ?box|link|page|tab page)$|^(?:tab|(?-i:menu)) ", bare):
        target = read_target(part, text)
        return Click(target if not place else Target(target.name, target.role, target.ordinal, inside=place))
    shown = part.shown(bare)
    if shown.casefold() in ("it", "this", "that"):
        return Open(read_target(part, bare).name, inside=place)
    if re.match(r"(?:it|them) ", bare, re.IGNORECASE):  # "bring it back"
        raise NotUnderstoodError(f"I do not understand what to do with “{shown}”.")
    browsers = lexicon.programs_of_kind("browser")
    default = bool(place) and lexicon.programs_of_kind(place.casefold()) == browsers
    if address := _page(shown, by_browser=default or lexicon.letters_of(place) in browsers):
        if place and not default:
            raise FinalRefusalError(f"I show pages in the default browser only: leave out “{place}”.")
        return Open(address, "page")
    anew = re.match(r"(?:an? |the |me )*(?:new|another|second) ", text, re.IGNORECASE) is not None
    # "open Files" and "open Applications" name a program; "open the files" does not say which files.
    known = shown.casefold() in lexicon.programs()
    if _GENERIC.fullmatch(bare) and (bare != text or not (known or shown[0].isupper())):
        raise NotUnderstoodError(f"I do not understand which “{shown}” to open: name it.")
    if re.fullmatch("(?i:preferences)|settings|options", shown) and not place and _is_application(part):
        return Open(part.it, "settings")  # "open Mousepad, then open the preferences"
    if known:
        return Open(shown, inside=place, anew=anew)
    if (match := _KIND_OF_FILE.fullmatch(bare)) and _FILE_NAME.fullmatch(part.shown(match["name"])):
        return Open(part.shown(match["name"]), "file", place)
    if (dialog := re.fullmatch("(?P<name>.+) dialog(?:ue)?", bare)) and part.shown(
        dialog["name"]
    ).casefold() in panel_names():
        return Open(part.shown(dialog["name"]), "settings", place)
    for pattern, kind in _KINDS.items():
        if match := re.fullmatch(pattern, bare, re.IGNORECASE):
            name = re.sub("['’]s?$", "", part.shown(match["name"] or match["before"]))
            if name.islower() and bare != text and picks_one(name) and name not in lexicon.programs():
                raise NotUnderstoodError(f"I do not know which “{shown}” is meant: say its name.")
            return Open(name, kind, place, anew and kind == "application")
    if part.quotation(bare) is None and _COMMAND.search(shown):
        raise FinalRefusalError(_NO_COMMANDS.format(shown))
    return Open(shown, "file" if _FILE_NAME.fullmatch(shown) else "", place, anew)


def _is_application(part: Part) -> bool:
    """Return whether the last opened thing is an application, and not one for the desktop's settings."""
    known = part.it_is_open and part.it.casefold() in lexicon.applications()
    return known and not re.search("(?i)settings|preferences|control", part.it)


def _page(shown: str, *, by_browser: bool) -> str:
    """Return the address of a web page; "" if this is none."""
    found = _PAGE.fullmatch(shown)
    return (found["sure"] or ((by_browser or found["called"]) and found["host"]) or "") if found else ""


def _get(part: Part, match: Groups) -> list[Goal] | None:
    """ "get me the file manager", "I need a terminal": only for things that can be opened or switched."""
    what = match["what"]
    target = read_target(part, what)
    if target.inside and is_switch(target.name):  # "large text in the accessibility settings"
        return [Toggle(target, on=True)]
    name = part.shown(re.sub(r"^(?:the|a|an|my|some) ", "", what, flags=re.IGNORECASE))
    if name.casefold() in lexicon.applications() or re.search(rf"(?i) (?:{_APPLICATION}|folder|{_SETTINGS})$", name):
        return _open(part, match)
    return [Toggle(target, on=True)] if is_switch(name) else None


def _show(part: Part, match: Groups) -> list[Goal]:
    what = match["what"]
    name = part.shown(re.sub(r"^(?:the|my|all the) ", "", what, flags=re.IGNORECASE))
    target = read_target(part, what, kinds=False)
    if is_switch(name) or is_switch(target.name):
        return [Toggle(Target(target.name, inside=target.inside, whole=f"Show {name}"), on=True)]
    return _get(part, match) or _open_file(part, match) or [Click(read_target(part, what), or_open=True)]


def _open_file(part: Part, match: Groups) -> list[Goal] | None:
    """ "show recipe.txt", "look at my Downloads folder": only for files and folders."""
    with suppress(NotUnderstoodError):
        opened = _open(part, match)
        if all(
            isinstance(goal, Open)
            and (goal.kind == "folder" or (goal.kind == "file" and _FILE_NAME.fullmatch(goal.name.rpartition("/")[2])))
            for goal in opened
        ):
            return opened
    return None


def _go_to(part: Part, match: Groups) -> list[Goal]:
    first, *further = _PATH.split(match["what"])
    if further:
        return [*_go_to(part, {"what": first}), *_clicks(part, further)]
    if _page(re.sub(r"^the | (?:in|with) .+$", "", part.shown(first), flags=re.IGNORECASE), by_browser=True):
        return _open(part, {"what": f"page {re.sub('^the (?:web ?)?(?:site|page) ', '', first)}"})
    target = read_target(part, first)
    if target.role in ("page tab", "menu"):
        return [Click(target)]
    if is_switch(target.name):
        return [Toggle(target, on=True)]
    kinds = r" (?:settings|preferences|section|page|folder|directory|app|window|panel)$"
    name = re.sub(kinds, "", target.name, flags=re.IGNORECASE)
    whole = target.whole or (target.name if name != target.name else "")
    if name != target.name and name.islower() and picks_one(name):  # "the previous window"
        raise NotUnderstoodError(f"I do not know which “{target.name}” is meant: say its name.")
    return [Click(replace(target, name=name, whole=whole), or_open=True)]


def _switch_to(part: Part, match: Groups) -> list[Goal]:
    what = match["what"]
    target = read_target(part, what)
    if target.role in ("page tab", "menu"):
        if target.name.islower() and picks_one(target.name) and not target.ordinal:
            raise NotUnderstoodError(f"I do not know which “{part.shown(what)}” is meant: say its name.")
        return [Click(target)]
    name = part.shown(re.sub(r"^(?:the|a|an|my) ", "", what, flags=re.IGNORECASE))
    if is_switch(name) or re.search(r"\b(?:mode)$", name, re.IGNORECASE):
        return [Toggle(target, on=True)]
    if found := re.fullmatch(rf"(?:the )?(?P<value>.+?) (?P<control>{fragment('choosable')})", what, re.IGNORECASE):
        return [Choose(part.shown(found["value"]), Target(part.shown(found["control"])))]
    if target.role or target.name.casefold().endswith(" view"):
        return [Click(target)]
    if match["verb"].casefold() == "use" and name.casefold() in lexicon.applications():
        return [Open(name, "application")]
    if match["verb"].casefold().startswith("switch"):
        return [ArrangeWindow("focus", _window(part, what))]
    return [Click(target, or_open=True)]


def _close(part: Part, match: Groups) -> list[Goal]:
    names = _windows(part, match["what"])
    return [Close(name, dialog=not name and bool(_DIALOG.search(match["what"] or ""))) for name in names]


def _close_others(part: Part, match: Groups) -> list[Goal]:
    return [CloseOthers(tuple(filter(None, _windows(part, match["what"]))))]


def _show_desktop(_part: Part, _match: Groups) -> list[Goal]:
    return [ArrangeWindow("show desktop")]


def _arrange(part: Part, match: Groups) -> list[Goal]:
    how = re.sub(r"[- ]", "", match["how"].casefold()).replace("mise", "mize").removesuffix("d")
    hows: dict[str, _How] = {"maximize": "maximize", "fullscreen": "fullscreen", "focus": "focus"}
    hows |= {"minimize": "minimize", "iconify": "minimize", "restore": "unmaximize", "unmaximize": "unmaximize"}
    return [ArrangeWindow(hows[how], name) for name in _windows(part, match["what"] or "it")]


def _windows(part: Part, text: str) -> list[str]:
    """Return the names of windows, "" for the front window; "it" is the last opened thing."""
    names = [_window(part, item) for item in split_list(text)[0] or [""]]
    if names.count("") > 1:
        raise NotUnderstoodError("I do not know which windows you mean: name each.")
    return names


def _window(part: Part, text: str) -> str:
    if not text or _FRONT.fullmatch(text):
        return part.it if part.it_is_open and re.fullmatch(r"it|this|that", text, re.IGNORECASE) else ""
    text = re.sub(r"['’]s? (?:window|dialog(?:ue)?)$", "", text, flags=re.IGNORECASE)  # "the text editor's window"
    around = rf" (?:{_APPLICATION}|dialog|dialogue|folder)$|^(?:window|application|app|program) (?:called |named )?"
    target = read_target(part, text, kinds=False)
    name = re.sub(around, "", target.name, flags=re.IGNORECASE)
    if picks_one(target.name) and target.inside and not target.ordinal:  # "the window of the calculator"
        return target.inside
    unclear = not name or (name.islower() and picks_one(name)) or target.ordinal or target.inside or target.under
    if unclear and "\x00" not in text:
        raise NotUnderstoodError(f"I do not know which window “{part.shown(text)}” is: say what it is called.")
    return name
