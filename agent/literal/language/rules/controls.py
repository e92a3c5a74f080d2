"""Builders for switches, buttons, choices and sliders."""

import re
from dataclasses import replace
from typing import Literal

from agent.core.actions import Button
from agent.literal.goals import BACKDROP, ArrangeWindow, Choose, Click, Goal, SetValue, Target, Toggle, Type
from agent.literal.language.rules.base import Groups, builders, fragment, is_described, times
from agent.literal.language.sentences import FinalRefusalError, NotUnderstoodError, Part
from agent.literal.language.targets import place_name, read_target, read_targets, split_list
from agent.literal.vocabulary import lexicon
from agent.literal.vocabulary.numbers import amount_of
from agent.literal.vocabulary.places import is_choice, is_switch, known_thing

_ON = frozenset(
    (
        *("on", "enable", "activate", "check", "tick", "enabled", "activated", "checked", "ticked", "active"),
        *("true", "yes", "shown", "visible"),
    )
)
_TEXT_FIELDS = re.compile(
    r"\b(?:name|title|text|caption|address|url|hostname|comment|description|e-?mail|host|user ?name|file ?name|value)$",
    re.IGNORECASE,
)
_RAISING = ("increase", "raise", "boost", "enlarge", "speed up")
#: Things that no single setting makes faster or better.
_MACHINES = re.compile(
    r"(?:computer|pc|laptop|machine|system|internet|network|connection|wifi|desktop|it all|life|work|day)",
    re.IGNORECASE,
)


def _toggle(part: Part, match: Groups) -> list[Goal]:
    on = match["state"].casefold() in _ON
    if re.fullmatch(r"(?:the |my |this )?(?:computer|pc|machine|laptop|system)", match["what"], re.IGNORECASE):
        raise FinalRefusalError("I do not switch the computer itself on or off.")
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
    """ "bluetooth on": only for known or quoted names."""
    name = part.shown(re.sub(r"^(?:the|my) ", "", match["what"], flags=re.IGNORECASE))
    if "\x00" not in match["what"] and "\x01" not in match["what"] and not known_thing(name):
        return None
    return _toggle(part, match)


def _mute(_part: Part, match: Groups) -> list[Goal] | None:
    muted = not match["verb"].casefold().startswith("un")
    what = re.sub(r"^(?:the|my|all|your) ", "", match["what"], flags=re.IGNORECASE)
    if re.fullmatch(r"mic(?:rophone)?", what, re.IGNORECASE):
        return [Toggle(Target("microphone"), not muted)]
    sound = re.fullmatch(r"(?:sounds?|volume|audio|speakers?|computer|music|it|everything)?", what, re.IGNORECASE)
    return [Toggle(Target("mute"), muted)] if sound else None


def _hide(part: Part, match: Groups) -> list[Goal]:
    name = part.shown(re.sub(r"^(?:the|my) ", "", match["what"], flags=re.IGNORECASE))
    if re.search(r"\bwindow$", name):
        return [ArrangeWindow("minimize", re.sub(r"^(?:this|the current|current)? ?window$| window$", "", name))]
    target = read_target(part, match["what"], kinds=False)
    return [Toggle(replace(target, whole=target.whole or f"Hide {name}"), on=False)]


def _click(part: Part, match: Groups) -> list[Goal]:
    kind = match["kind"].lower()
    found = re.fullmatch(r"(?P<what>.+) with the (?P<button>right|middle|left)(?: mouse)? button", match["what"], re.I)
    what, number = times(found["what"] if found else match["what"])
    held = found["button"].lower() if found else kind
    button: Button = "right" if held.startswith("right") else "middle" if held.startswith("middle") else "left"
    if re.fullmatch(r"(?:at )?\(?\d+ ?[,x] ?\d+\)?", what) and re.search(r"\d{2}", what):
        raise NotUnderstoodError("I do not click at coordinates: name what is there.")
    if not what.strip(" \x00"):
        raise NotUnderstoodError("I do not understand a click without a target.")
    count = 2 if kind.startswith("double") else 1
    targets = _clicked(part, what)
    if re.search(r" on (?:the|my) desktop$", what, re.IGNORECASE):
        targets = [replace(one, inside=BACKDROP) if one.inside.casefold() == "desktop" else one for one in targets]
    return [Click(target, button, count) for target in targets for _ in range(number)]


def _clicked(part: Part, what: str) -> list[Target]:
    if len(path := re.split(r" (?:>|→|->|▸|») ", what)) > 1:
        return [read_target(part, item) for item in path]
    items, sure = split_list(what)
    short = len(items) > 1 and all(len(part.shown(item)) <= 2 or "\x00" in item for item in items)
    if (sure or short) and len(items) > 1:
        return [target for item in items for target in read_targets(part, item, split_two=False)]
    return [read_target(part, what)]


def _click_path(part: Part, match: Groups) -> list[Goal]:
    """ "the menu File > Save As": a click on each."""
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
    if control.role == "push button" and control.whole:  # buttons have no choices: "button" is a part of the name
        control = replace(control, name=control.whole, role="")
    whole = part.shown(f"{match['value']} {match['preposition']} {match['control']}")
    return [
        Choose(
            part.shown(match["value"]), replace(control, whole=whole if "\x00" not in match["value"] else control.whole)
        )
    ]


def _choose_named(part: Part, match: Groups) -> list[Goal] | None:
    """ "the Greybird theme", "the style Daloa": a value and its control."""
    name = part.shown(f"{match['value']} {match['control']}")
    if known_thing(name):
        return [Toggle(Target(name), on=True)] if is_switch(name) else None
    value = read_target(part, match["value"], places=False)
    if value.ordinal or value.role or read_target(part, f"{match['value']} one").ordinal:
        return None
    return [Choose(value.name, Target(part.shown(match["control"])))]


def _turned_off(part: Part, match: Groups) -> list[Goal] | None:
    """ "no event sounds": only for known things."""
    target = read_target(part, match["what"], places=False)
    return [Toggle(target, on=False)] if is_switch(target.name) else None


def _known_value(part: Part, match: Groups) -> list[Goal] | None:
    """ "text bigger", "font size 14": only for known things."""
    target = read_target(part, match["what"], places=False)
    if not known_thing(target.name):
        return None
    if match.get("way"):
        return [SetValue(target, direction=_direction(match["way"]))]
    amount = amount_of(part.shown(match["amount"]))
    return None if amount is None else [SetValue(target, *amount)]


def _set_to(part: Part, match: Groups) -> list[Goal] | None:
    first, joint, rest = match["value"].partition(" and ")
    if not joint or amount_of(part.shown(first)) is None:
        return _set_one(part, match)
    raise NotUnderstoodError(f"I do not understand what “and {part.shown(rest)}” adds: say it by itself.")


def _set_one(part: Part, match: Groups) -> list[Goal] | None:
    control, value = match["what"], match["value"]
    shown = part.shown(value)
    inside = ""
    if "\x00" not in value and (
        found := re.fullmatch(r"(?P<value>.+) in (?P<place>(?:the )?.+)", value, re.IGNORECASE)
    ):
        value, inside = found["value"], place_name(part, found["place"])
        shown = part.shown(value)
    control = re.sub(r" from \S+$", "", control, flags=re.IGNORECASE)
    target = read_target(part, re.sub(r"^(?:the )?value of ", "", control, flags=re.IGNORECASE))
    target = replace(target, inside=target.inside or inside)
    if (amount := amount_of(shown)) is not None and not (shown.isalpha() and is_choice(target.name)):
        return [SetValue(target, *amount)]
    if "\x00" not in value and is_switch(shown):
        return [Toggle(Target(shown), on=True)]
    if re.match(r"move|put|drag|slide|turn|bring", match["verb"], re.IGNORECASE):
        return None
    if target.role == "entry" or (_TEXT_FIELDS.search(target.name) and not known_thing(target.name)):
        if "\x00" not in value and is_described(shown):
            raise NotUnderstoodError(f"I do not know whether to type “{shown}”: put what to type in quotation marks.")
        return [Type(shown, target, replace=True)]
    shown = re.sub(r"^(?:the|a) (?=\S)", "", shown, flags=re.IGNORECASE) if "\x00" not in value else shown
    return [Choose(shown, target)]


def _as(part: Part, match: Groups) -> list[Goal] | None:
    """ "use Firefox as the default browser", "make it my wallpaper": only for known things."""
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
    """ "a bigger font", "larger text": only for known things."""
    if re.fullmatch("up|down", match["way"], re.IGNORECASE):  # "set up my mouse" names no particular change
        return None
    target = read_target(part, match["what"])
    return [SetValue(target, direction=_direction(match["way"]))] if known_thing(target.name) else None


def _increase(part: Part, match: Groups) -> list[Goal]:
    verb = match.get("verb", "").casefold()
    way = "up" if verb in _RAISING else "down" if verb else _direction(match["way"])
    what = read_target(part, re.sub(r" all the way$", "", match["what"]))
    if match["what"].endswith(" all the way"):
        return [SetValue(what, 100.0 if way == "up" else 0.0, "%")]
    if match["to"] or match["by"]:
        amount = amount_of(part.shown(match["to"] or match["by"]))
        if amount is None:
            return [Choose(part.shown(match["to"] or match["by"]), what)] if match["to"] else []
        return [SetValue(what, *amount, direction="" if match["to"] else way)]
    return [SetValue(what, direction=way)]


def _make_value(part: Part, match: Groups) -> list[Goal] | None:
    amount = amount_of(part.shown(match["amount"]))
    return None if amount is None else [SetValue(read_target(part, match["what"]), *amount)]


def _direction(word: str) -> Literal["up", "down"]:
    return "up" if re.fullmatch(fragment("up"), word, re.IGNORECASE) else "down"


BUILDERS = builders(
    _toggle,
    _toggle_there,
    _mute,
    _hide,
    _tick,
    _click_path,
    _make,
    _increase,
    _make_value,
    _more_of,
    _set_to,
    _as,
    _choose,
    _turned_off,
    _choose_named,
    _click,
    _toggle_words,
    _known_value,
)
