"""Parses descriptions of things on the screen: name, kind, ordinal and place."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from agent.literal.goals import PANELS, Target
from agent.literal.language.sentences import NotUnderstoodError, Part
from agent.literal.language.table import fragment
from agent.literal.vocabulary import lexicon, quotes
from agent.literal.vocabulary.lexicon import ORDINALS
from agent.literal.vocabulary.places import known_thing

_ORDINAL = re.compile(rf"(?i)(?P<word>{lexicon.either(ORDINALS)}|(?P<digits>\d{{1,2}})(?:st|nd|rd|th)) (?P<rest>.+)")
_FROM_END = re.compile(r"(?i) from the (?:(?P<start>left|top|start|beginning)|right|bottom|end)$")
#: Names of the button that opens an application's menu.
_MAIN_MENU = re.compile(r"(?i)(?:main|primary|app|application|hamburger) menu")
#: Nouns that can be counted but are no kind of control.
_COUNTED = frozenset(
    ("file", "folder", "picture", "image", "photo", "wallpaper", "thumbnail", "theme", "choice", "line", "app")
)
#: In lower case only, because a capital letter begins a label: "On the right side".
_ARTICLE = re.compile(r"^(?:(?:on|at|onto|over|the|a|an|your|my|this|that|these|those|its) )+")
_PRONOUNS = frozenset({"it", "this", "that", "this one", "that one", "them", "it all"})
_IN = re.compile(
    r"(?i)(?P<thing>.+) (?:in|inside|within|from|on(?= the | \x00| my )|at the (?:top|bottom) of|of(?= the [^\x00]+ "
    r"(?:window|dialog|menu|page)$))"
    r" (?P<place>\S.*)"
)
_OF = re.compile(r"(?i)(?P<thing>.+) of (?P<place>.+)")
_OWNED = re.compile(r"(?i)(?P<place>[^\x00]+?)['’]s (?P<thing>.+)")
_TAB_NAME = r"(?P<tab>[^\x00]+? (?:tab|page|section))"
_TAB = re.compile(rf"(?i)(?:the )?{_TAB_NAME}")
_ON_TAB = re.compile(rf"(?i)(?P<thing>.+) (?:on|in|under|from) the {_TAB_NAME}")
_UNDER = re.compile(
    r"(?i)(?P<thing>.+) (?:under|below|beneath|underneath|near|(?P<beside>next to|beside|to the (?:left|right) of)) "
    r"(?P<label>.+)"
)
_ROW = re.compile(r"(?i)(?P<thing>.+) (?:in|on|from) the (?:row|line) (?:of|for|with) (?P<beside>.+)")
_PLURAL = re.compile(r"(?<!s)s$")
#: Suffixes of a known thing that are not part of its name.
_SETTING = re.compile(r"(?i) (?:settings?|options?|feature|function)$")
_BOX_OF = re.compile(
    r"(?i)(?:check ?|tick ?)?box (?:next to|beside|for|of|called|named|labell?ed|that says) (?P<name>.+)"
)
_CALLED = r"(?:(?:called|named|labell?ed|titled|that says|saying|with the (?:name|label|text)) )"
#: Names of desktops, which give no place.
_DESKTOPS = frozenset(("gnome", "kde", "xfce", "mate", "cinnamon", "plasma", "system", "desktop"))
#: A label in sentence case: "Show hidden files".
_SENTENCE = re.compile(r"[A-Z]\S* (?:\S+ )*[a-z]\S* \S")
#: How a condition begins, which is no part of a place: "in Mousepad if it is hidden".
_IF = re.compile(r"(?i)\b(?:if|unless|until|whenever|while|when) (?=it|the|this|that|there|they|I|you|my)")
_PREFERENCES = re.compile(r"(?i) (?:preferences|settings|options)(?:$| of )")
#: Names of the sidebar, as in file managers.
_SIDE = re.compile(r"(?i)(?:left |right )?side ?(?:bar|pane|panel)|(?:places|shortcuts) (?:bar|pane|panel)")
_DOCKS = re.compile(r"(?:top|bottom) panel|dock|task ?bar|top bar")
_WINDOW = re.compile(r"(?i)(?:window|dialog|dialogue|application|app|program|screen|here|page)$")
_POINTS = re.compile(r"(?:.* )?(?:over )?(?:here|there)|thing")
_HERE = frozenset(
    "window dialog dialogue list page menu view group app application program screen here left right middle".split()  # noqa: SIM905
)
#: A clause that only gives an opinion: "my machine is slow". "The compositor is off" may be a wish.
_COMMENT = re.compile(
    r"(?i)(?:it|that|this|(?:my|the) \w+)(?: is| are|['’]s) (?:(?:too|so|very|really|much) )*"
    r"(?!on$|off$|\w+(?:ed|en)$)[a-z]+"
)
#: How a clause begins: with a pronoun, or with a noun and a verb of being or having.
_MINE = re.compile(r"(?i)(?:my|your|our) \w+ \w")  # "my eyes hurt"
_SAYS = re.compile(
    r"(?i)(?:i|you|we|he|she|they|it)(?:['’]\w+)? |(?:it|that|there|this|how|why)['’]s "
    r"|(?:how|why|whether|because) |[^\x00]*\b(?:is|are|was|were|has been|have been) "
)


def read_target(part: Part, text: str, *, kinds: bool = True, places: bool = True) -> Target:
    """Parse a piece of a part as a target. Raises NotUnderstoodError if it, or what "it" refers to, names nothing.

    `kinds`: read a kind of control ("button") as the role rather than a part of the name. `places`: read "in Y" and
    "under Y" as its place.
    """
    text = text.strip(" ,.:")
    if part.shown(text).casefold() in _PRONOUNS:
        if not part.it:
            raise NotUnderstoodError(f"I do not know what “{part.shown(text)}” is: name it.")
        return Target(part.it)
    if (quotation := quotes.only_quotation(text, part.quoted, names=True)) is not None:
        return Target(quotation)
    bare = _ARTICLE.sub("", text)
    target = _placed(part, bare, article=bare != text) if places else None
    if target is None:
        target = _named(part, bare, kinds=kinds, article=bare != text)
    if _POINTS.fullmatch(target.name) or (not target.name and not target.role and not target.ordinal):
        raise NotUnderstoodError(f"I do not understand what “{part.shown(text)}” is.")
    return target


def read_targets(part: Part, text: str, *, split_two: bool) -> list[Target]:
    """Parse a list ("A, B and C") as targets.

    `split_two`: whether "A and B" without a comma may be two things. Both then keep the full text in `whole`.
    """
    items, sure = split_list(text)
    if len(items) > 1 and not sure and not (split_two and _are_two(part, items)):
        items = [text]
    targets = [read_target(part, item) for item in items]
    inside, role = targets[-1].inside, targets[-1].role
    whole = "" if sure or len(items) == 1 else part.shown(_ARTICLE.sub("", text))
    return [
        replace(
            target,
            inside=target.inside or inside,
            role=target.role or (role if re.search(r"s$", text) else ""),
            whole=whole or target.whole,
        )
        for target in targets
    ]


def split_list(text: str) -> tuple[list[str], bool]:
    """Split a list. True if it is certainly a list: "A, B and C", "A then B"; "A and B" may be one name.

    Raises NotUnderstoodError for a later item that is another clause and so names nothing: "A, it's what we need".
    """
    sure = bool(re.search(r",| then ", text))
    parts = re.split(
        r" ?, ?(?:and |then ){0,2}| and (?:then |also )?| then | as well as ", re.sub(r"^both ", "", text, flags=re.I)
    )
    items = [item.strip() for item in parts if item.strip()]
    items = [*items[:1], *(item for item in items[1:] if not _COMMENT.fullmatch(item))]
    if clause := next((item for item in items[1:] if _SAYS.match(item) or _MINE.match(item)), None):
        raise NotUnderstoodError(
            f"I do not understand what “{clause}” adds: leave it out, or say it by itself. "
            "If it is a name, put it in quotation marks."
        )
    return items, sure


def picks_one(text: str) -> bool:
    """Return whether words only pick one of several things ("the first file", "other window") and name none."""
    return re.fullmatch(fragment("picks"), text) is not None


def place_name(part: Part, text: str) -> str:
    """Return the name of a place without the word for its kind; "" for the front window."""
    text = text.strip(" ,.")
    if (quotation := quotes.only_quotation(text, part.quoted, names=True)) is not None:
        return quotation
    bare = _ARTICLE.sub("", re.sub(r"^.+ (?:under|,) ", "", text))
    bare = re.sub(r"(?i)(?<=\w page) of (?:the )?(?:system )?settings$", "", bare)  # a page's name is enough
    if found := _IF.search(bare):
        raise NotUnderstoodError(f"I cannot follow “{found[0].strip()}”: say only what to do.")
    if bare.casefold() in _HERE:
        return ""
    if bare.casefold() in lexicon.applications():
        return part.shown(bare)
    if _MAIN_MENU.fullmatch(bare):
        return part.shown(bare)
    if _SIDE.fullmatch(bare):
        return "sidebar"
    if _DOCKS.fullmatch(bare):
        return PANELS
    if match := re.fullmatch(rf"{_place_words()} {_CALLED}?(?P<name>\x00\d+\x00)", bare, re.IGNORECASE):
        return part.shown(match["name"])
    shorter = re.sub(rf"^{_place_words()} of (?:the |my )?|(?:['’]s)? {_place_words()}$", "", bare, flags=re.IGNORECASE)
    if _PREFERENCES.search(f" {bare}") and (own := preferences_of(f"{shorter} preferences")):
        return f"{part.shown(own)} preferences"
    if shorter != bare and shorter.islower() and picks_one(shorter):  # "a new tab"
        raise NotUnderstoodError(f"I do not know which “{part.shown(text)}” is meant: say its name.")
    return part.shown(bare if shorter.casefold() in _DESKTOPS else shorter)


def preferences_of(place: str) -> str:
    """Return the application whose preferences a place is, as `place_name` names it; "" if it is no such place."""
    name = place.removesuffix(" preferences")
    if name == place or name.casefold() not in lexicon.applications():
        return ""
    settings = lexicon.programs_of_kind("settings")
    return "" if lexicon.programs_of_kind(name.casefold()) == settings else name


def _placed(part: Part, text: str, *, article: bool) -> Target | None:
    """Parse "X in Y", "X under Y" or "the X tab of Y", with the full text in `whole`; None without a place."""
    if _FROM_END.search(text):
        return None
    inside = under = ""
    if match := _ROW.fullmatch(text):
        under = part.shown(match["beside"])
    elif (match := _OWNED.fullmatch(text)) and part.shown(match["place"]).casefold() in lexicon.programs():
        inside = part.shown(match["place"])  # "Mousepad's toolbar"
        article = article and re.fullmatch(_role_words(), match["thing"]) is not None
    elif (match := re.fullmatch(rf"(?P<thing>.*{_role_words()}) of (?P<place>.+)", text, re.IGNORECASE)) or (
        (match := _IN.fullmatch(text)) and not re.search(r"\bbox$", match["thing"], re.IGNORECASE)
    ):
        inside = place_name(part, match["place"])
    elif (match := _OF.fullmatch(text)) and not known_thing(part.shown(text)) and _program(part, match["place"]):
        inside = _program(part, match["place"])  # "the status bar of Mousepad"
    elif (match := _UNDER.fullmatch(text)) and not _BOX_OF.fullmatch(text):
        label = read_target(part, match["label"], places=False)
        under = label.whole or label.name  # "Primary Button"
    else:
        return None
    thing = match["thing"]
    if inside and (found := _ON_TAB.fullmatch(thing)):  # "X on the Icons tab of the Desktop settings"
        thing, inside = found["thing"], f"{part.shown(found['tab'])} of {inside}"
    target = read_target(part, f"the {thing}" if article else thing)
    if inside and target.inside and (tab := _TAB.fullmatch(match["place"])):  # "X in Window Manager, on the Focus tab"
        inside = f"{part.shown(tab['tab'])} of {target.inside}"
    if target.ordinal and target.role != "list item" and not inside and not under and not _WINDOW.search(text):
        raise NotUnderstoodError(f"I do not know of which things “{part.shown(text)}” is one: name where they are.")
    whole = "" if "\x00" in match["thing"] else part.shown(text)
    if whole and (target.inside or target.under):  # "Show paths in titles in the file manager": a place twice
        whole = target.whole
    elif whole and thing != match["thing"]:
        whole = ""
    elif whole and inside:  # "Only files from the current folder under Search"
        whole = part.shown(re.sub(r" under (?!.* under ).+", "", text))
    beside = match.groupdict().get("beside") is not None if under else target.beside
    return replace(target, inside=inside or target.inside, under=under or target.under, beside=beside, whole=whole)


def _program(part: Part, text: str) -> str:
    """Return the name of an application or settings dialog; "" for anything else."""
    place = place_name(part, text)
    return place if place.casefold() in lexicon.programs() and not known_thing(place) else ""


def _named(part: Part, text: str, *, kinds: bool, article: bool) -> Target:
    shown = part.shown(text)
    if match := _BOX_OF.fullmatch(text):
        return replace(read_target(part, match["name"], places=False), role="check box")
    if re.fullmatch(r"search (?:box|field|bar|entry)", shown, re.IGNORECASE):
        return Target("search", "entry")
    if counted := _counted(part, text):
        return counted
    if known_thing(shown):
        return Target(_SETTING.sub("", shown))
    if shown.casefold() in lexicon.applications():  # "file manager"
        return Target(shown)
    if not kinds:
        return Target(shown)
    first = re.fullmatch(rf"{_role_words('role')} (?P<called>{_CALLED})?(?P<name>.+)", text, re.IGNORECASE)
    last = re.fullmatch(rf"(?P<name>.+?) {_role_words('role')}", text, re.IGNORECASE)
    surely = first is not None and bool(first["called"] or "\x00" in first["name"])
    if first is not None and (surely or (article and first["role"].islower())):
        name = read_target(part, first["name"], kinds=False, places=False).name
        return Target(name, _role(first["role"]), whole="" if surely else shown)
    if _MAIN_MENU.fullmatch(shown):
        return Target(shown)
    if last is not None and not _role(last["role"]) and _SENTENCE.match(shown):
        return Target(shown)
    if last is not None and (article or not _PLURAL.search(last["role"])):
        name, role = read_target(part, last["name"], kinds=False, places=False).name, _role(last["role"])
        surely = (article and last["role"].islower()) or "\x00" in last["name"]
        return Target(name, role, whole="" if surely else shown) if surely or article or role else Target(shown)
    if article and re.fullmatch(_role_words(), text) and _role(text):
        return Target(role=_role(text), whole=shown)
    return Target(shown)


def _counted(part: Part, text: str) -> Target | None:
    """Parse "third icon", "second Browse button", "last one", "first icon from the right"; None for anything else."""
    match = _ORDINAL.fullmatch(text)
    if match is None or match["word"][0].isupper():
        return None
    ordinal = int(match["digits"]) if match["digits"] else ORDINALS[match["word"].casefold()]
    rest = match["rest"]
    if end := _FROM_END.search(rest):
        rest = rest[: end.start()]
        ordinal = ordinal if end["start"] else -ordinal
    if rest.casefold() in _COUNTED:
        return Target(ordinal=ordinal, whole=part.shown(text))
    kind = re.fullmatch(rf"(?:(?P<name>.+) )?{_role_words('role')}", rest, re.IGNORECASE)
    if kind is None:
        return None
    name = read_target(part, kind["name"], kinds=False, places=False).name if kind["name"] else ""
    return Target(name, _role(kind["role"]), ordinal)


def _role(word: str) -> str:
    roles: Mapping[str, str] = lexicon.config()["roles"]
    word = word.casefold()
    singular = re.sub(r"(?<=box)es$|(?<=switch)es$|s$", "", word)
    return roles.get(word) or roles.get(singular) or roles.get(re.sub(r"ies$", "y", word), "")


def _are_two(part: Part, items: list[str]) -> bool:
    """Return whether "A and B" is probably two things: both are known or quoted, or their capitalization is alike."""
    names = [part.shown(_ARTICLE.sub("", item)) for item in items]
    if all(known_thing(name) for name in names):
        return True
    if any("\x00" in item or "\x01" in item for item in items):
        return True
    return len({name[:1].isupper() for name in names}) == 1


@cache
def _role_words(group: str = "") -> str:
    roles = lexicon.config()["roles"]
    words = lexicon.either([*roles, *(f"{role}s" for role in roles), "boxes", "switches", "check boxes", "entries"])
    return f"(?P<{group}>{words})" if group else words


@cache
def _place_words() -> str:
    return lexicon.either(lexicon.config()["places"]["words"])
