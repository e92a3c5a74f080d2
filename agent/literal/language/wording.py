"""What the engine says: describes goals and targets, and suggests the nearest sentence that it understands."""

from functools import cache

from agent.core.actions import shorten
from agent.literal import goals
from agent.literal.vocabulary.lexicon import config, ordinal_word
from agent.literal.vocabulary.places import is_switch, names_of_things

#: The instructions that the engine understands, for error messages.
UNDERSTOOD = (
    "open X, click X, double-click X, right-click X, type '...' (into X), press ctrl+s, scroll down, wait, enable X, "
    "disable X, set X to 6, choose Y in X, rename, move or copy a file, create a folder called X, calculate 3 * 4, "
    "close X; joined by and, then and commas"
)
_LONGEST = 40
#: Similarity from which a word counts as a misspelled verb, of 100.
_ALIKE = 75
#: Similarity from which an example sentence is suggested, of 100.
_NEAR = 60

_QUESTIONS = frozenset("what who where why when which how is are was".split())  # noqa: SIM905


def describe_goal(goal: goals.Goal) -> str:
    """Describe a goal."""
    match goal:
        case goals.Open(name, _, inside):
            return f"open “{name}”{_in(inside)}"
        case goals.Press(keys):
            return f"press {'+'.join(keys)}"
        case goals.Click(target, button, count):
            verb = "double-click" if count == 2 else "click" if button == "left" else f"{button}-click"
            return f"{verb} {describe_target(target)}"
        case goals.Toggle(target, on):
            return f"{'enable' if on else 'disable'} {describe_target(target)}"
        case goals.Choose(value, control):
            return f"choose “{value}” in {describe_target(control)}"
        case goals.SetValue(target, None, _, direction):
            return f"turn {describe_target(target)} {direction}"
        case goals.SetValue(target, value, unit, direction):
            amount = f"{value:g}{unit if unit == '%' else f' {unit}'.rstrip()}"
            return f"set {describe_target(target)} {f'{direction} by' if direction else 'to'} {amount}"
        case goals.Type(text, into):
            return f"type {shorten(text, _LONGEST)}" + (f" into {describe_target(into)}" if into else "")
        case goals.Scroll(direction, _, to_end):
            return f"scroll {direction}" + (" to the end" if to_end else "")
        case goals.Wait(seconds):
            return f"wait {seconds:g} s"
        case goals.Close(target):
            return f"close “{target}”" if target else "close the window"
        case goals.CloseOthers(kept):
            return "close all windows but " + (", ".join(f"“{name}”" for name in kept) or "the one in front")
        case goals.ArrangeWindow("show desktop"):
            return "show the desktop"
        case goals.ArrangeWindow(how, target):
            verb = "bring to the front:" if how == "focus" else f"{how}:"
            return f"{verb} {f'“{target}”' if target else 'the window'}"
        case goals.MakeFolder(name, where):
            return f"create the folder “{name}”{_in(where)}"
        case goals.Rename(old, new, where):
            return f"rename “{old}”{_in(where)} to “{new}”"
        case goals.Trash(name, where):
            return f"move “{name}”{_in(where)} to the trash"
        case goals.Transfer(name, to, where, copy):
            return f"{'copy' if copy else 'move'} “{name}”{_in(where)} to “{to}”"
        case goals.ReplaceText(old, new):
            return f"replace {shorten(old, _LONGEST)} with {shorten(new, _LONGEST)}"
        case goals.WriteFile(text, save_as):
            return f"write {shorten(text, _LONGEST)}" + (f" and save it as “{save_as}”" if save_as else "")
        case goals.SaveAs(name):
            return f"save as “{name}”" if name else "save"
        case goals.Calculate(expression):
            return f"calculate {expression}"
        case goals.Repeat(parts):
            return "; ".join(describe_goal(part.goal) for part in parts)


def describe_target(target: goals.Target) -> str:
    """Describe a target: "“Style”", "the third icon", "the check box “Wrap” under “Text”"."""
    if target.picture and not target.name:
        return f"the {target.role or 'thing'} that looks as recorded{_in(target.inside)}"
    ordinal = ordinal_word(target.ordinal) if target.ordinal else ""
    longer = target.whole if not (target.inside or target.under) and target.whole.startswith(target.name) else ""
    named = f"“{longer or target.name}”" if target.name else ""
    kind = target.role if ordinal or not named else ""
    words = " ".join(filter(None, (ordinal, kind, named)))
    words = f"the {words}" if ordinal or not named else words
    under = f" {'next to' if target.beside else 'under'} “{target.under}”" if target.under else ""
    return words + under + _in(target.inside)


def _in(place: str) -> str:
    return f" in “{place}”" if place else ""


def nearest(text: str) -> str:
    """Return a suggestion with a leading space; "" if nothing is near."""
    suggestion = _nearest(" ".join(text[:200].split()))
    return "" if suggestion is None else f" The nearest that I understand: “{suggestion}”."


@cache
def _nearest(text: str) -> str | None:
    from rapidfuzz import fuzz, process

    verb = text.partition(" ")[0].casefold()
    if not verb or verb in _QUESTIONS:
        return None
    long = (name for name in names_of_things() if len(name) > 8 and f" {name} " in f" {text.casefold()} ")
    if things := [name for name in long if is_switch(name)]:
        return f"turn on {max(things, key=len)}"
    examples = config()["examples"]["sentences"]
    verbs = [example.split(" ")[0] for example in examples]
    meant = process.extractOne(verb, verbs, scorer=fuzz.ratio, score_cutoff=_ALIKE)
    same_verb = [example for example in examples if meant and example.split(" ")[0] == meant[0]]
    found = process.extractOne(text, same_verb or examples, scorer=fuzz.ratio, score_cutoff=0 if same_verb else _NEAR)
    return None if found is None else str(found[0])
