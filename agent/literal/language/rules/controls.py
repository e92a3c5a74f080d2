"""Builders for switches, buttons, choices and sliders."""

import re
from dataclasses import replace

from agent.core.actions import Button
from agent.literal.goals import BACKDROP, ArrangeWindow, Choose, Click, Goal, SetValue, Target, Toggle, Type
from agent.literal.language.rules.keyboard import is_described, times
from agent.literal.language.sentences import FinalRefusalError, NotUnderstoodError, Part
from agent.literal.language.table import Groups, fragment
from agent.literal.language.targets import place_name, preferences_of, read_target, read_targets, split_list
from agent.literal.vocabulary import lexicon
from agent.literal.vocabulary.measures import direction_of, measured_by
from agent.literal.vocabulary.numbers import amount_of
from agent.literal.vocabulary.places import is_choice, is_switch, known_thing

_ON = frozenset(
    "on enable activate check tick enabled activated checked ticked active true yes shown visible".split()  # noqa: SIM905
)
_TEXT_FIELDS = re.compile(
    r"(?i)\b(?:name|title|text|caption|address|url|hostname|comment|description|e-?mail|host|username|filename|value)$"
)
#: Words of another switch's state in a name.
_STATE = re.compile(r"^(?:on|off|>) |(?<!turn)(?<!turns)(?<!turned)(?<!switch)(?<!log)(?<!sign) (?:on|off)(?: and)?$")
#: An end of a slider, as a place.
_END = re.compile(r"(?i)the (?P<far>far |very )?(?P<end>right|left|top|bottom)(?: end)?")
#: Things that no single setting makes faster or better.
_MACHINES = re.compile(
    r"(?i)(?:computer|pc|laptop|machine|system|internet|network|connection|wifi|desktop|it all|life|work|day)"
)


def _toggle(part: Part, match: Groups) -> list[Goal]:
    on = match["state"].casefold() in _ON
    if re.fullmatch(r"(?:the |my |this )?(?:computer|pc|machine|laptop|system)", match["what"], re.IGNORECASE):
        raise FinalRefusalError("I do not switch the computer itself on or off.")
    targets = read_targets(part, match["what"], split_two=True)
    if " then " in match["what"] and (odd := [one.name for one in targets[1:] if _is_no_label(part, one.name)]):
        raise NotUnderstoodError(f"I do not know what to do with “{odd[0]}”: say it in other words.")
    if unclear := [one.name for one in targets if "\x00" not in match["what"] and _STATE.search(one.name)]:
        raise NotUnderstoodError(f"I do not know what to switch by “{unclear[0]}”: say each by itself.")
    return [
        Click(target) if on and target.role in ("page tab", "menu", "menu item") else Toggle(target, on)
        for target in targets
    ]


def _is_no_label(part: Part, name: str) -> bool:
    return name.islower() and name not in part.quoted and not known_thing(name)


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
    targets = _clicked(part, what)
    if re.search(r" on (?:the|my) desktop$", what, re.IGNORECASE):
        targets = [replace(one, inside=BACKDROP) if one.inside.casefold() == "desktop" else one for one in targets]
    count = 2 if kind.startswith("double") else 1
    return [Click(target, button, count) for target in targets for _ in range(number)]


def _clicked(part: Part, what: str) -> list[Target]:
    if len(path := re.split(r" (?:>|→|->|▸|») ", what)) > 1:
        steps = [read_target(part, item) for item in path]
        return [replace(one, inside=one.inside or steps[-1].inside) for one in steps]
    items, sure = split_list(what)
    short = len(items) > 1 and all(len(part.shown(item)) <= 2 or "\x00" in item for item in items)
    if (sure or short) and len(items) > 1:
        return [target for item in items for target in read_targets(part, item, split_two=False)]
    return [read_target(part, what)]


def _click_path(part: Part, match: Groups) -> list[Goal]:
    """ "the menu File > Save As": a click on each."""
    return [Click(read_target(part, step)) for step in match["what"].split(" > ")]


def _make(part: Part, match: Groups) -> list[Goal] | None:
    """ "make the title alignment left"."""
    thing = part.shown(match["thing"])
    return [Choose(part.shown(match["value"]), Target(thing))] if is_choice(thing) else None


def _choose(part: Part, match: Groups) -> list[Goal] | None:
    """ "choose Daloa in Style" is a choice; "choose Save in the File menu" is a click."""
    if match["preposition"] == "under":  # "pick Slight under Hinting"
        thing = read_target(part, match["thing"] + match["control"])
        return [Choose(part.shown(match["value"]), thing)] if is_choice(thing.name) else None
    if (of_place := _theme_of_place(part, match)) is not None:
        return [of_place]
    if re.search(
        r"(?i) (?:tab|menu|page|window|dialog|toolbar|section|list|panel)$| (?:under|below|next to) ", match["control"]
    ):
        return None
    if " > " in match["value"] and place_name(part, match["control"]).casefold() in lexicon.programs():
        return None  # "choose View > Zoom In in Mousepad"
    if read_target(part, match["value"], places=False).role or split_list(match["value"])[0] != [match["value"]]:
        return None
    if preferences_of(place := place_name(part, match["control"])):
        return [Click(replace(read_target(part, match["value"], places=False), inside=place))]
    control = read_target(part, match["control"])
    if control.role == "push button" and control.whole:  # buttons have no choices: "button" is a part of the name
        control = replace(control, name=control.whole, role="")
    if "\x00" not in match["value"]:
        control = replace(control, whole=part.shown(f"{match['value']} {match['preposition']} {match['control']}"))
    return [Choose(part.shown(match["value"]), control)]


def _theme_of_place(part: Part, match: Groups) -> Choose | None:
    """ "use the Moheli theme for the window manager"."""
    value = rf"(?i)(?:the )?(?P<name>(?-i:[A-Z\x00])\S*) (?P<kind>{fragment('choosable')})"
    found, place = re.fullmatch(value, match["value"]), place_name(part, match["control"])
    if found is None or not place or match["preposition"] == "as":
        return None
    own = Target(f"{place} {found['kind']}")
    control = own if known_thing(own.name) else Target(found["kind"], inside=place)
    return Choose(part.shown(found["name"]), control) if known_thing(control.name) else None


def _choose_named(part: Part, match: Groups) -> list[Goal] | None:
    """ "the Greybird theme", "the style Daloa": a value and its control."""
    name = part.shown(f"{match['value']} {match['control']}")
    if known_thing(name):
        return [Toggle(Target(name), on=True)] if is_switch(name) else None
    value = read_target(part, match["value"], places=False)
    if value.ordinal or value.role or read_target(part, f"{match['value']} one").ordinal:
        return None
    return [Choose(value.name, Target(part.shown(match["control"])))]


def _set_to(part: Part, match: Groups) -> list[Goal] | None:
    first, joint, rest = match["value"].partition(" and ")
    if joint and amount_of(part.shown(first)) is not None:
        raise NotUnderstoodError(f"I do not understand what “and {part.shown(rest)}” adds: say it by itself.")
    what, value, inside = match["what"], match["value"], ""
    # "set Timeout to show the panel to 5": the number stands last
    later = re.fullmatch(r"(?i)(?P<what>[^\x00]+) to (?P<value>[^\x00]+)", value)
    if later and amount_of(later["value"]) is not None and amount_of(later["what"]) is None:
        what, value = f"{what} to {later['what']}", later["value"]
    if found := re.fullmatch(r"(?i)(?P<value>\x00\d+\x00|[^\x00]+) (?:in|under|on(?= the )) (?P<place>.+)", value):
        value, inside = found["value"], place_name(part, found["place"])
    shown, is_quoted = part.shown(value), "\x00" in value
    if (end := _END.fullmatch(shown)) and re.match(r"move|put|drag|slide", match["verb"], re.IGNORECASE):
        slider = read_target(part, what.removesuffix(" all the way"))
        if slider.role == "slider" and (what.endswith(" all the way") or end["far"]):
            return [SetValue(slider, 100.0 if end["end"].casefold() in ("right", "top") else 0.0, "%")]
    control = re.sub(r"^(?:the )?value of |(?<=\w) from [^,]+$", "", what, flags=re.IGNORECASE)
    target = read_target(part, control)
    stripped = control != what and " from " in what
    whole = target.whole or (part.shown(what) if stripped else "")  # "spacing from Top Edge" may be its name
    target = replace(target, inside=target.inside or inside, whole=whole)
    _check_sign(shown if shown.startswith("+") else "")
    if (amount := amount_of(shown)) is not None and not (shown.isalpha() and is_choice(target.name)):
        return [SetValue(target, *amount)]
    if not is_quoted and is_switch(shown) and "\x00" not in control and not target.inside:
        return [Toggle(Target(shown), on=True)]
    if re.match(r"move|put|drag|slide|turn|bring", match["verb"], re.IGNORECASE):
        return None
    if target.role == "entry" or (_TEXT_FIELDS.search(target.name) and not known_thing(target.name)):
        if not is_quoted and is_described(shown):
            raise NotUnderstoodError(f"I do not know whether to type “{shown}”: put what to type in quotation marks.")
        return [Type(shown, target, replace=True)]
    if not is_quoted and re.match(r"an? \S", shown, re.IGNORECASE):
        raise NotUnderstoodError(f"I do not know which one “{shown}” is: say its name.")
    return [Choose(shown if is_quoted else re.sub(r"^the (?=\S)", "", shown, flags=re.IGNORECASE), target)]


def _set_number(part: Part, match: Groups) -> list[Goal] | None:
    """ "enter 9 for Number of workspaces", "font size 14"."""
    amount = amount_of(part.shown(match["amount"]))
    _check_sign(match["amount"])
    return None if amount is None else [SetValue(read_target(part, match["what"]), *amount)]


def _check_sign(amount: str) -> None:
    """Raise NotUnderstoodError for a signed amount, which may be a step or a value."""
    if amount.strip().startswith(("+", "-")):
        raise NotUnderstoodError(f"I do not know whether {amount.strip()} is a step: say “by” or “to” and the number.")


def _as(part: Part, match: Groups) -> list[Goal] | None:
    """ "use Firefox as the default browser", "make it my wallpaper": only for known things."""
    control = read_target(part, match["control"], kinds=False)
    if not known_thing(control.name) and not control.name.casefold().startswith("default"):
        return None
    return [Choose(read_target(part, match["value"], kinds=False, places=False).name, control)]


def _change(part: Part, match: Groups) -> list[Goal] | None:
    """ "make the text bigger", "lower the volume by 10", "turn the brightness up to 50 %"."""
    way = match["way"].casefold()
    what = match["what"].removesuffix(" all the way")
    target = read_target(part, what)
    target = replace(target, name=measured_by(way, target.name))
    program = target.name.casefold() in lexicon.programs() and not known_thing(target.name)
    if way not in ("up", "down") and (program or _MACHINES.fullmatch(target.name)):
        raise NotUnderstoodError(f"I do not know how to make “{target.name}” {way}: name what to set.")
    if (direction := direction_of(way, target.name)) is None:
        raise NotUnderstoodError(f"I do not know what to set to make “{target.name}” {way}: name what to set.")
    if what != match["what"]:
        return [SetValue(target, 100.0 if direction == "up" else 0.0, "%")]
    if not (shown := part.shown(match["to"] or match["by"])):
        return [SetValue(target, direction=direction)]
    if match["by"] and shown.casefold() in ("half", "a half", "a third", "a quarter"):
        raise NotUnderstoodError(f"I do not know what “by {shown}” is of it: say the number.")
    if (amount := amount_of(shown)) is None:
        return [Choose(shown, target)] if match["to"] else None
    return [SetValue(target, *amount, "" if match["to"] else direction)]
