"""Rules of evidence: which settings belong to a name, what looks like a crash, which step led to which."""

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from agent.core.changes import Change
from agent.literal.do.now import Done, Move, Now
from agent.literal.find.effects import SHOWING, new_changes
from agent.literal.find.finder import Finder
from agent.literal.find.scene import FIELDS
from agent.literal.goals import Click, Goal, Press, Toggle, target_of
from agent.literal.vocabulary.lexicon import plain
from agent.literal.vocabulary.numbers import value_of
from agent.screen.outline import Element
from foundation.configs import load_config

_WORD = re.compile(r"[A-Z]?[a-zäöüß]+|[A-Z]+(?![a-z])|\d+")


def leads(goal: Goal | None) -> bool:
    """Return whether a goal only leads to the next, whose success proves it."""
    return isinstance(goal, Press) and "+".join(goal.keys).lower() in _words("leading_keys")


def led_to(now: Now, move: Move) -> str:
    """Return the next goal's target in words if it is visible only since a move; else ""."""
    target = target_of(now.following)
    if target is None or Finder(move.scene, now.names).best(target) is not None:
        return ""
    found = now.finder.best(target)
    return "" if found is None else f"“{now.scene.text_of(found)[:60]}” is visible since then"


def shown_by_sum(reached: Sequence[tuple[Goal, Done]]) -> set[int]:
    """Return the indices of clicks on calculator keys, and of such keys pressed, that the shown result proves."""
    shown: set[int] = set()
    signs = ""
    for at, (goal, _) in enumerate(reached):
        name = goal.target.name.strip().lower() if isinstance(goal, Click) else ""
        if isinstance(goal, Press) and len(goal.keys) == 1:
            name = "=" if goal.keys == ("enter",) else goal.keys[0]
        sign = load_config("proof.toml")["signs"].get(name, name)
        words = " ".join(done.words for _, done in reached[at : at + 2] if done.verified)
        held = re.search(r"(?:holds|there came) “([^”]*)”|clipboard.*characters?: (\S+)", words)
        if sign == "=" and signs and held is not None:
            result, number = value_of(signs), (held[1] or held[2] or "").strip().replace("−", "-").replace(",", ".")
            if result is not None and re.fullmatch(r"-?\d{1,20}(?:\.\d{1,20})?", number) and result == Fraction(number):
                shown |= set(range(at - len(signs), at + 1))
        signs = signs + sign if re.fullmatch(r"[-+*/.()\d]", sign) else ""
    return shown


def shown_late(now: Now, goal: Goal, known: Sequence[Change], last: bool) -> str:
    """Return a change that proves a goal and was not known before it, in words; "" for none.

    A change about the target counts; for a switch, only with the wanted state. For a last click or key, any counts.
    """
    target = target_of(goal)
    name = target.name if target is not None else ""
    for change in new_changes(known, now.changes):
        if change.kind not in SHOWING:
            continue
        if isinstance(goal, Toggle):
            if is_about(change, name) and means_on(change, name) is goal.on:
                return str(change)
        elif (name and is_about(change, name)) or (last and isinstance(goal, Click | Press)):
            return str(change)
    return ""


def vanished(now: Now, move: Move) -> str:
    """Describe the front window of a move if its application has no window any more; else ""."""
    front = move.scene.front
    if front is None or any(window.app == front.app for window in now.scene.windows):
        return ""
    had = {(window.app, window.title) for window in move.scene.windows}
    if any((window.app, window.title) not in had for window in now.scene.windows):
        return ""  # another window replaced it, which a choice in it opened
    if "coordinate" in move.step.call and not now.clicked(move, front.box):
        return ""  # a click beside it, such as on its button in a panel
    return f"the window “{front.title or front.app}” vanished"


def may_close(text: str) -> bool:
    """Return whether a button of that text may close its window."""
    return bool(set(map(plain, _words("closing"))) & set(plain(text).split())) or not any(map(str.isalpha, text))


def key_may_close(keys: str) -> bool:
    """Return whether a key combination may close or hide a window."""
    return re.fullmatch(load_config("proof.toml")["closing_keys"], keys.lower()) is not None


def misnamed(now: Now, attempt: Move) -> str:
    """Return the name of a new file that contains the typed name but is another name; "" for none."""
    last = next((move for move in reversed(now.earlier) if move.step.main), None)
    typed = str(last.step.call.get("text", "")).strip() if last is not None and last.action == "type" else ""
    name = typed.rpartition("/")[2]
    known = {change.what for change in attempt.changes}
    new = [
        change.what.rpartition("/")[2]
        for change in now.changes
        if change.kind == "file" and change.before is None and change.what not in known
    ]
    if not name or name in new or ("." not in name and any(one.rpartition(".")[0] == name for one in new)):
        return ""
    return next((one for one in new if name in one), "")


def has_focus(now: Now, move: Move) -> Element | None:
    """Return the text field that a move clicked and that has the focus now; None if a menu got the click."""
    if move.scene.menu_is_open:
        return None
    focused = (one for one in now.scene.elements if one.role in FIELDS and "focused" in one.states and one.trusted)
    return next((one for one in focused if now.clicked(move, one.box)), None)


def is_about(change: Change, name: str) -> bool:
    """Return whether a setting shares a word with the wanted name, in its name or value."""
    wanted = _stems(name)
    keys = re.split(r"[/\s]", change.what.rstrip("/"))
    return bool(wanted & _stems(f"{' '.join(keys[-2:])} {change.after or ''}"))


def is_called(change: Change, name: str) -> bool:
    """Return whether a setting's own name contains all words of the wanted name."""
    wanted = _stems(name)
    return bool(wanted) and wanted <= _stems(re.split(r"[/\s]", change.what.rstrip("/"))[-1])


def means_on(change: Change, name: str) -> bool | None:
    """Return whether a setting says that a thing is on now; None if it is no switch.

    A setting is the opposite of a name if only one of them has a negative word.
    """
    value = (change.after or "").strip("'\"").casefold()
    own = set(map(str.casefold, _WORD.findall(re.split(r"[/\s]", change.what.rstrip("/"))[-1])))
    is_opposite = bool(_words("negative") & own) is not bool(_words("negative") & set(plain(name).split()))
    return (value == "true") is not is_opposite if value in ("true", "false") else None


def _stems(text: str) -> set[str]:
    words = {word.casefold() for word in _WORD.findall(text)}
    return {word.rstrip("s")[:5] for word in words - _words("common") if len(word) > 1}


@cache
def _words(kind: str) -> frozenset[str]:
    return frozenset(load_config("proof.toml")[kind].split())
