"""Switches, buttons, choices, sliders: what is done with a named thing on the screen."""

import re
from dataclasses import replace
from typing import Literal

from agent.core.actions import Button
from agent.literal.goals import ArrangeWindow, Choose, Click, Goal, SetValue, Target, Toggle, Type
from agent.literal.language.rules.base import Groups, Rule, is_described, times
from agent.literal.language.sentences import NotUnderstoodError, Part
from agent.literal.language.targets import place_name, read_target, read_targets, split_list
from agent.literal.vocabulary import lexicon
from agent.literal.vocabulary.numbers import NUMBER, amount_of
from agent.literal.vocabulary.places import is_choice, is_switch, known_thing

_ON = frozenset(
    (
        *("on", "enable", "activate", "check", "tick", "enabled", "activated", "checked", "ticked", "active"),
        *("true", "yes", "shown", "visible"),
    )
)
_STATE = r"(?P<state>on|off|enabled|disabled|activated|deactivated|checked|unchecked|ticked|unticked|active|inactive)"
_STATE_SHOWN = _STATE.replace("on|off", "on|off|hidden|invisible|shown|visible")
#: Which way words lead.
_UP = "bigger|larger|louder|brighter|faster|longer|higher|wider|taller|greater|thicker|stronger|quicker|more|up|warmer"
_DOWN = (
    "smaller|tinier|quieter|softer|dimmer|darker|slower|shorter|lower|narrower|thinner|weaker|less|down|colder|cooler"
)
_BIT = (
    r"(?: (?:a (?:little |tiny )?bit|a little|a (?:notch|touch|tad|step)|one step|a lot|much|slightly|somewhat|way|"
    r"far|even))?"
)
_BIT_BEFORE = r"(?:(?:(?:a )?(?:bit|little|much|slightly|lot|somewhat|way|far|even) )*)"
_UNIT = r" ?(?:%|percent|per cent|[a-z]{1,14})?"
_AMOUNT = rf"(?P<amount>{NUMBER}{_UNIT})"
#: What "dark" and "light" are chosen for: the theme, not a colour.
_THEMES = re.compile(
    r"(?:the |my )?(?:desktop |gtk |application |app |overall )?(?:theme|style|appearance|mode|colou?r scheme|look)",
    re.IGNORECASE,
)
#: "the Greybird theme": things named by what is chosen for them.
CHOOSABLE = (
    r"(?:icon |cursor |window |mouse |gtk )?theme|style|(?:keyboard )?layout|font|wallpaper|colou?r scheme|icons|"
    r"resolution"
)
_TEXT_FIELDS = re.compile(
    r"\b(?:name|title|text|caption|address|url|hostname|comment|description|e-?mail|host|user ?name|file ?name|value)$",
    re.IGNORECASE,
)
#: What no one setting makes faster or better.
_MACHINES = re.compile(
    r"(?:computer|pc|laptop|machine|system|internet|network|connection|wifi|desktop|it all|life|work|day)",
    re.IGNORECASE,
)
_GROUPS = re.compile(r"\b(?:page tab|menu|menu bar|tool bar|push button|dialog)\b")


def _toggle(part: Part, match: Groups) -> list[Goal]:
    on = match["state"].casefold() in _ON
    if re.fullmatch(r"(?:the |my |this )?(?:computer|pc|machine|laptop|system)", match["what"], re.IGNORECASE):
        raise NotUnderstoodError("I do not switch the computer itself on or off.")
    targets = read_targets(part, match["what"], split_two=True)
    return [
        Click(target) if on and target.role in ("page tab", "menu", "menu item") else Toggle(target, on)
        for target in targets
    ]


def _tick(part: Part, match: Groups) -> list[Goal]:
    """ "put a tick next to X", "mark the box X", "take the tick off X"."""
    on = match["verb"].casefold() in ("put", "set", "make", "place", "mark", "select")
    return [Toggle(read_target(part, match["what"]), on)]


def _toggle_there(part: Part, match: Groups) -> list[Goal]:
    where = re.sub("^for ", "under ", match["where"], flags=re.IGNORECASE)
    return _toggle(part, {"what": f"{match['what']} {where}", "state": match["state"]})


def _toggle_words(part: Part, match: Groups) -> list[Goal] | None:
    """ "bluetooth on": only for what is known, or in quotation marks."""
    name = part.shown(re.sub(r"^(?:the|my) ", "", match["what"], flags=re.IGNORECASE))
    if "\x00" not in match["what"] and "\x01" not in match["what"] and not known_thing(name):
        return None
    return _toggle(part, match)


def _flip(part: Part, match: Groups) -> list[Goal]:
    return [Click(read_target(part, match["what"]))]


def _mute(part: Part, match: Groups) -> list[Goal]:
    muted = not match["verb"].casefold().startswith("un")
    what = re.sub(r"^(?:the|my|all|your) ", "", match["what"], flags=re.IGNORECASE)
    if not what or re.fullmatch(
        r"(?:the )?(?:sound|volume|audio|speakers?|computer|music|it|everything|sounds)", what, re.IGNORECASE
    ):
        return [Toggle(Target("mute"), muted)]
    if re.fullmatch(r"mic(?:rophone)?", what, re.IGNORECASE):
        return [Toggle(Target("microphone"), not muted)]
    if re.fullmatch(r"notifications", what, re.IGNORECASE):
        return [Toggle(Target("Do Not Disturb"), muted)]
    return [Toggle(Target("mute", inside=place_name(part, what)), muted)]


def _hide(part: Part, match: Groups) -> list[Goal] | None:
    what = match["what"]
    name = part.shown(re.sub(r"^(?:the|my) ", "", what, flags=re.IGNORECASE))
    if re.search(r"\b(?:window|dialog|message|popup|app|application)$", name) and match["verb"] != "hide":
        return None
    if re.search(r"\bwindow$", name):
        return [ArrangeWindow("minimize", re.sub(r"^(?:this|the current|current)? ?window$| window$", "", name))]
    target = read_target(part, what, kinds=False)
    whole = target.whole or (f"Hide {name}" if match["verb"].casefold() == "hide" else "")
    return [Toggle(replace(target, whole=whole), on=False)]


def _click(part: Part, match: Groups) -> list[Goal]:
    kind = re.sub(r"[ -]", "", match["kind"].lower())
    button: Button = "right" if kind.startswith("right") else "middle" if kind.startswith("middle") else "left"
    what, number = times(
        re.sub(r" with the (?P<button>right|middle|left)(?: mouse)? button$", "", match["what"], flags=re.IGNORECASE)
    )
    if found := re.search(r" with the (right|middle)(?: mouse)? button$", match["what"], re.IGNORECASE):
        button = "right" if found[1].lower() == "right" else "middle"
    if re.fullmatch(r"(?:at )?\(?\d+ ?[,x] ?\d+\)?", what) and re.search(r"\d{2}", what):
        raise NotUnderstoodError("I do not click at coordinates: name what is there.")
    if not what.strip(" \x00"):
        raise NotUnderstoodError("I do not understand a click without a target.")
    count = 2 if kind.startswith("double") else 1
    return [Click(target, button, count) for target in _clicked(part, what) for _ in range(number)]


def _clicked(part: Part, what: str) -> list[Target]:
    if len(path := re.split(r" (?:>|→|->|▸|») ", what)) > 1:
        return [read_target(part, item) for item in path]
    items, sure = split_list(what)
    short = len(items) > 1 and all(len(part.shown(item)) <= 2 or "\x00" in item for item in items)
    if (sure or short) and len(items) > 1:
        return [target for item in items for target in read_targets(part, item, split_two=False)]
    return [read_target(part, what)]


def click_path(part: Part, match: Groups) -> list[Goal]:
    """ "the menu File > Save As": one after the other."""
    return [Click(read_target(part, step)) for step in match["what"].split(" > ")]


def _choose(part: Part, match: Groups) -> list[Goal] | None:
    """ "choose Daloa in Style" is a choice; "choose Save in the File menu" is a click."""
    if re.search(r" (?:tab|menu|page|window|dialog|toolbar|section|list|panel)$", match["control"], re.IGNORECASE):
        return None
    if read_target(part, match["value"], places=False).role or split_list(match["value"])[0] != [match["value"]]:
        return None
    if re.search(r" (?:under|below|next to) ", match["control"], re.IGNORECASE):
        return None
    control = read_target(part, match["control"])
    if control.role == "push button" and control.whole:  # nothing is chosen from a button: it is a part of the name
        control = replace(control, name=control.whole, role="")
    whole = part.shown(f"{match['value']} {match['preposition']} {match['control']}")
    return [
        Choose(
            part.shown(match["value"]), replace(control, whole=whole if "\x00" not in match["value"] else control.whole)
        )
    ]


def _choose_named(part: Part, match: Groups) -> list[Goal] | None:
    """ "the Greybird theme", "the style Daloa": what is chosen, and for what."""
    name = part.shown(f"{match['value']} {match['control']}")
    if known_thing(name):
        return [Toggle(Target(name), on=True)] if is_switch(name) else None
    value = read_target(part, match["value"], places=False)
    if value.ordinal or value.role or read_target(part, f"{match['value']} one").ordinal:
        return None
    return [Choose(value.name, Target(part.shown(match["control"])))]


def _turned_off(part: Part, match: Groups) -> list[Goal] | None:
    """ "no event sounds": only for what is known."""
    target = read_target(part, match["what"], places=False)
    return [Toggle(target, on=False)] if is_switch(target.name) else None


def _known_value(part: Part, match: Groups) -> list[Goal] | None:
    """ "text bigger", "font size 14": only for what is known."""
    target = read_target(part, match["what"], places=False)
    if not known_thing(target.name):
        return None
    if match.get("way"):
        return [SetValue(target, direction=_direction(match["way"]))]
    amount = amount_of(part.shown(match["amount"]))
    return None if amount is None else [SetValue(target, *amount)]


def _set_to(part: Part, match: Groups) -> list[Goal] | None:
    control, value = match["what"], match["value"]
    shown = part.shown(value)
    if re.fullmatch(r"(?:dark|light|bright)", shown, re.IGNORECASE) and _THEMES.fullmatch(control):
        return [Toggle(Target("dark theme"), on=shown.casefold() == "dark")]
    inside = ""
    if "\x00" not in value and (
        found := re.fullmatch(r"(?P<value>.+) in (?P<place>(?:the )?.+)", value, re.IGNORECASE)
    ):
        value, inside = found["value"], place_name(part, found["place"])
        shown = part.shown(value)
    control = re.sub(r" from \S+$", "", control, flags=re.IGNORECASE)
    target = read_target(part, re.sub(r"^(?:the )?value of ", "", control, flags=re.IGNORECASE))
    target = replace(target, inside=target.inside or inside)
    if re.fullmatch(rf"{_STATE}|true|false|yes|no", shown, re.IGNORECASE):
        return [Toggle(target, shown.casefold() in _ON)]
    if (amount := amount_of(shown)) is not None and not (shown.isalpha() and is_choice(target.name)):
        return [SetValue(target, *amount)]
    if "\x00" not in value and is_switch(shown):
        return [Toggle(Target(shown), on=True)]
    if re.match(r"move|put|drag|slide|turn|bring", match["verb"], re.IGNORECASE):
        return None
    if re.fullmatch(rf"(?:something |a )?(?:{_UP}|{_DOWN})(?: .+)?", shown, re.IGNORECASE) and "\x00" not in value:
        return None
    if target.role == "entry" or (_TEXT_FIELDS.search(target.name) and not known_thing(target.name)):
        if "\x00" not in value and is_described(shown):
            raise NotUnderstoodError(f"I do not know whether to type “{shown}”: put what to type in quotation marks.")
        return [Type(shown, target, replace=True)]
    shown = re.sub(r"^(?:the|a) (?=\S)", "", shown, flags=re.IGNORECASE) if "\x00" not in value else shown
    return [Choose(shown, target)]


def _as(part: Part, match: Groups) -> list[Goal] | None:
    """ "use Firefox as the default browser", "make it my wallpaper": only for what is known."""
    control = read_target(part, match["control"], kinds=False)
    if not known_thing(control.name) and not control.name.casefold().startswith("default"):
        return None
    return [Choose(read_target(part, match["value"], kinds=False, places=False).name, control)]


def _make(part: Part, match: Groups) -> list[Goal]:
    target = read_target(part, match["what"])
    program = target.name.casefold() in lexicon.programs() and not known_thing(target.name)
    if _MACHINES.fullmatch(target.name) or program:
        raise NotUnderstoodError(f"I do not know how to make “{target.name}” {match['way']}: name what to set.")
    value, unit = (amount_of(part.shown(match["amount"])) if match["amount"] else None) or (None, "")
    return [SetValue(target, value, unit, _direction(match["way"]))]


def _more_of(part: Part, match: Groups) -> list[Goal] | None:
    """ "a bigger font", "larger text": only for what is known."""
    if re.fullmatch("up|down", match["way"], re.IGNORECASE):  # "set up my mouse" asks for nothing in particular
        return None
    target = read_target(part, match["what"])
    return [SetValue(target, direction=_direction(match["way"]))] if known_thing(target.name) else None


def _of_value(part: Part, match: Groups) -> list[Goal] | None:
    """ "use a font size of 14": only for what is known."""
    return _known_value(part, {"what": match["what"], "amount": match["amount"]})


def _increase(part: Part, match: Groups) -> list[Goal]:
    verb = match["verb"].casefold()
    way = (
        "up"
        if verb in ("increase", "raise", "boost", "up", "enlarge", "turn up", "crank up", "bump up", "speed up")
        else "down"
    )
    what = read_target(part, re.sub(r" all the way$", "", match["what"]))
    if match["what"].endswith(" all the way"):
        return [SetValue(what, 100.0 if way == "up" else 0.0, "%")]
    if match["to"] or match["by"]:
        amount = amount_of(part.shown(match["to"] or match["by"]))
        if amount is None:
            return [Choose(part.shown(match["to"] or match["by"]), what)] if match["to"] else []
        return [SetValue(what, *amount, direction="" if match["to"] else "up" if way == "up" else "down")]
    return [SetValue(what, direction="up" if way == "up" else "down")]


def _increase_turned(part: Part, match: Groups) -> list[Goal]:
    return _increase(part, {**match, "verb": "raise" if match["way"].casefold() == "up" else "lower"})


def _make_value(part: Part, match: Groups) -> list[Goal] | None:
    amount = amount_of(part.shown(match["amount"]))
    return None if amount is None else [SetValue(read_target(part, match["what"]), *amount)]


def _direction(word: str) -> Literal["up", "down"]:
    return "up" if re.fullmatch(_UP, word, re.IGNORECASE) else "down"


_CLICK = (
    r"(?P<kind>double[ -]?click|right[ -]?click|middle[ -]?click|left[ -]?click|click|tap|choose|select|pick|"
    r"highlight|mark)"
)
_TO_BE = r"(?:to be |to |is |are |be |should be |must be |gets? |stays? |set to )?(?:turned |switched |set )?"
_BY = r"(?: (?:to (?P<to>.+)|by (?P<by>.+)))?"
RULES: list[Rule] = [
    (rf"(?:turn|crank|bump) (?P<way>up|down) (?P<what>.+?){_BIT}{_BY}", _increase_turned),
    (rf"(?:turn|crank|bump) (?P<what>.+?) (?P<way>up|down){_BIT}{_BY}", _increase_turned),
    (r"(?:switch|turn|toggle|put|flip) (?P<state>on|off) (?P<what>.+)", _toggle),
    (r"(?:switch|turn) (?P<what>.+?) (?P<state>on|off) (?P<where>(?:in|under|for) .+)", _toggle_there),
    (r"(?:switch|turn|toggle|put|flip) (?P<what>.+?)(?: back)? (?P<state>on|off)", _toggle),
    (r"(?P<state>enable|activate|check|tick|disable|deactivate|uncheck|untick|deselect|unselect)(?: off)? (?P<what>.+)",
     _toggle),
    (r"(?:i want|i(?:['’]d| would) like|i prefer|i need|let|make sure|ensure|see to it)(?: that| to have)? "
     rf"(?P<what>.+?) {_TO_BE}{_STATE_SHOWN}", _toggle),
    (rf"(?:have|leave|keep|get|make|set|turn) (?P<what>.+?) {_TO_BE}{_STATE_SHOWN}", _toggle),
    (rf"(?P<what>.+?) (?:should|must|has to|needs to|shall|is to) be (?:turned |switched |set )?{_STATE}", _toggle),
    (r"(?P<verb>mute|unmute|un-mute)(?: (?P<what>.+))?", _mute),
    (r"(?P<verb>hide) (?P<what>.+)", _hide),
    (r"(?P<state>clear) (?P<what>(?:the )?(?:(?:check ?box|tick|option|box) .+|.+ (?:check ?box|tick ?box|option)))",
     _toggle),
    (r"(?P<state>clear) (?P<what>(?-i:[A-Z]\S*)(?: \S+){2,})", _toggle),
    (r"(?P<verb>put|set|make|place|remove|take|clear) (?:a|the) (?:tick|check ?mark|check|cross) (?:next to|beside|at|"
     r"in|before|in front of|on|off|from|of|for) (?P<what>.+)", _tick),
    (r"(?P<verb>mark|select) the (?:check ?|tick ?)?box (?:called |named |labell?ed |next to |for )?(?P<what>.+)",
     _tick),
    (r"toggle (?P<what>.+)", _flip),
    (r"(?:use |go to |open |choose )?the menu (?P<what>[^>]+(?: > [^>]+)+)", click_path),
    (rf"(?:make|turn|get) (?P<what>.+?){_BIT}(?: by)?(?: {_AMOUNT})? (?P<way>{_UP}|{_DOWN})", _make),
    (rf"(?:make|turn|get) (?P<what>.+?) (?P<way>{_UP}|{_DOWN})(?: by {_AMOUNT})", _make),
    (rf"(?P<verb>increase|raise|boost|enlarge|decrease|lower|reduce|shrink) (?P<what>.+?){_BIT}{_BY}", _increase),
    (rf"(?P<verb>speed up|slow down) (?P<what>.+?){_BIT}(?P<to>)(?P<by>)", _increase),
    (rf"make (?P<what>.+?) {_AMOUNT}(?: (?:big|large|wide|high|long|tall))?", _make_value),
    (r"(?:use|i want|i need|give me|i(?:['’]d| would) like|set|choose|pick)?(?: to have)? ?(?:an? |the )"
     rf"?{_BIT_BEFORE}(?P<way>{_UP}|{_DOWN}) (?P<what>.+)",
     _more_of),
    (rf"(?:use|i want|i need|give me|choose|have)(?: to have)? (?:an? |the )?(?P<what>.+?) of {_AMOUNT}", _of_value),
    (r"(?P<verb>set|change|switch|adjust|turn|move|drag|put|configure|make|slide) (?P<what>.+?) (?:to|into|at|over "
     r"to) (?P<value>.+)", _set_to),
    (r"(?:use|set|have|take|choose|select|pick|make) (?P<value>.+?) (?:as|for|be|to be) (?P<control>.+)", _as),
    (r"make (?P<value>\S+) (?P<control>(?:the|my) .+)", _as),
    (r"(?:choose|select|pick|use|set) (?P<value>.+) (?P<preposition>in|for|as|from) (?P<control>.+)", _choose),
    (r"get rid of (?P<what>.+)", _turned_off),
    (r"(?:choose|select|pick|apply|set|use|take) (?:the )?(?P<value>\x00\d+\x00|\S.*?) "
     rf"(?P<control>{CHOOSABLE})", _choose_named),
    (rf"(?:choose|select|pick|apply|set|use|take) (?:the )?(?P<control>{CHOOSABLE}) (?P<value>\x00\d+\x00|"
     rf"(?-i:[A-Z])\S*)", _choose_named),
    (r"no(?: more)? (?P<what>.+)", _turned_off),
    (rf"{_CLICK}(?: on| at)? (?P<what>.+)", _click),
    (rf"(?P<what>.+?) {_STATE}", _toggle_words),
    (rf"(?P<what>.+?) (?P<way>{_UP}|{_DOWN})", _known_value),
    (rf"(?P<what>.+?) {_AMOUNT}", _known_value),
]  # fmt: skip
