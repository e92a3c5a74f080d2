"""Typing: into what has the focus, or into a named field, and read back from where it went."""

import re

from agent.literal.do.looking import known_place, look_further
from agent.literal.do.proof import scene_before, vanished
from agent.literal.do.toggling import targets_of
from agent.literal.find.finder import WHOLE
from agent.literal.find.scene import FIELDS, TEXTS, Scene
from agent.literal.goals import Target, Type
from agent.literal.language.wording import describe_target
from agent.literal.state.conversation import Move
from agent.literal.state.effects import Effects, effects
from agent.literal.state.goal_state import Done, GoalState, Step, Stuck, Verdict, press, wait
from agent.screen.outline import Element

#: Text that nothing takes when pasted is pressed key by key, if it is at most this long.
_MOST_KEYS = 24
_TAKES_TEXT = FIELDS | {"spin button", "combo box", "document web", "autocomplete"}
_SEARCH = ("search", "find", "filter", "suchen", "suche")
#: A text of so many letters is known by most of them, in per cent: some are misread.
_LONG, _READ_ALIKE = 12, 80.0
_KEY_NAMES = {"\n": "enter", "\t": "tab", " ": "space"}


def type_text(now: GoalState, goal: Type) -> Verdict:
    """The next step of typing a text."""
    typed = now.tried("act")
    if typed and (gone := vanished(now, typed[0])):
        return Stuck(f"{gone[:1].upper()}{gone[1:]} while I typed.")
    if not typed:
        if goal.into is not None and not now.tried("focus"):
            return _focus(now, goal.into)
        if (goal.replace or _in_new_dialog(now, goal)) and not now.tried("pick"):
            return press("Select what stands there, to replace it.", "pick", "ctrl+a")
        return Step(f"Type the text ({len(goal.text)} characters).", "act", {"action": "type", "text": goal.text})
    pressed = now.tried("keys")
    first = typed[0]
    if not pressed and (words := went_in(now, goal.text, first)):
        if (more := _holds_more(now, goal)) is not None:
            return Stuck(
                f"{describe(more)} holds “{' '.join((more.value or '').split())[:60]}”, not only what I typed."
            )
        return Done(words)
    if not pressed and now.waits < 1:
        return wait("The text is not to be seen yet: wait.", 0.5)
    return _by_keys(now, goal, first, pressed)


def _in_new_dialog(now: GoalState, goal: Type) -> bool:
    """Whether a dialog has just opened with a text in its field: that was selected, to be replaced."""
    came = next((move for move in reversed(now.earlier) if move.intent == "act"), None)
    before, front = None if came is None else scene_before(came), now.scene.front
    if goal.into is not None or before is None or front is None:
        return False
    if any((window.app, window.title) == (front.app, front.title) for window in before.windows):
        return False
    if now.scene.is_late:
        return True
    return any(  # which has the focus is often told late
        one.value and one.role in FIELDS and now.scene.in_front(one) and one.box.height < 60
        for one in now.scene.elements
        if "multi_line" not in one.states
    )


def _holds_more(now: GoalState, goal: Type) -> Element | None:
    """The field that was to hold a text alone, and holds more."""
    last = now.earlier[-1].call.get("keys") if now.earlier else None
    if not goal.replace and not now.tried("pick") and (goal.into is not None or last != "ctrl+a"):
        return None
    wanted = " ".join(goal.text.split())
    held = [(one, " ".join((one.value or "").split())) for one in _focused(now)]
    return next((one for one, text in held if wanted in text and text != wanted), None)


def _focused(now: GoalState) -> list[Element]:
    """The field in front that has the focus."""
    return [
        one
        for one in now.scene.elements
        if one.role in FIELDS - {"terminal", "password text"} and "focused" in one.states and now.scene.in_front(one)
    ]


def _focus(now: GoalState, into: Target) -> Verdict:
    place = known_place(now, into)
    field = field_of(now, into, place_targets := targets_of(into, place))
    if field is None:
        return look_further(now, place_targets[0], place)
    if "disabled" in field.states:
        return Stuck(f"{describe_target(into)} takes no text now: it is greyed out.")
    return now.click(f"Focus {describe_target(into)}: click it.", "focus", field)


def field_of(now: GoalState, into: Target, targets: list[Target]) -> Element | None:
    """The field of that name; a search field may have none."""
    for target in targets:
        if (found := now.the(target, _TAKES_TEXT)) is not None:
            return found.element
    front = [
        one
        for one in now.scene.elements
        if one.role in FIELDS and now.scene.in_front(one) and one.trusted and "offscreen" not in one.states
        and one.role not in ("paragraph",) and (one.role != "text" or "editable" in one.states)
    ]  # fmt: skip
    name = into.name.casefold()
    if name in _SEARCH or name in ("address", "location", "url", "path"):
        single = [one for one in front if "multi_line" not in one.states and one.box.height < 60]
        return single[0] if len(single) == 1 else None
    if not name or name in ("text", "editor", "document", "text editor", "window", "text area", "page"):
        front.sort(key=lambda one: -one.box.width * one.box.height)
        return front[0] if front else None
    window = now.scene.named_window(into.name)
    if window is not None:
        inside = [one for one in front if now.scene.in_window(one, window)]
        inside.sort(key=lambda one: -one.box.width * one.box.height)
        return inside[0] if inside else None
    found = now.finder.best(into, TEXTS, least=WHOLE) if not now.scene.has_tree else None
    return found.element if found is not None else None


def went_in(now: GoalState, text: str, since: Move) -> str:
    """Where the text stands now that did not before, in words; "" where it does not."""
    wanted = " ".join(text.split())
    if not wanted:
        return "; ".join(now.effects_of(since).altered)
    before = Scene(since.screen.outline) if since.screen is not None and since.screen.outline is not None else None
    for element in sorted(now.scene.elements, key=lambda one: "focused" not in one.states):
        if element.role == "password text":
            was = _same_in(before, element)
            if "focused" in element.states and was is not None and (element.value or "") != (was.value or ""):
                return f"{describe(element)} holds as much as was typed"
            continue
        if element.role not in _TAKES_TEXT | {"label", "static", "list item", "table cell"}:
            continue
        held = " ".join((element.value or (element.name if element.role in TEXTS else "")).split())
        if not _holds(held, wanted):
            continue
        was = _same_in(before, element)
        old = " ".join(((was.value or "") if was is not None else "").split())
        if old.count(wanted[:40]) < held.count(wanted[:40]):
            return f"{describe(element)} holds “{wanted[:60]}”"
    return _read_back(now, wanted, before)


def _holds(held: str, wanted: str) -> bool:
    """Whether a field holds a text; what a field tells may be cut."""
    return wanted in held or (len(held) >= 40 and wanted.startswith(held.removesuffix("…").rstrip()[:200]))


def _read_back(now: GoalState, wanted: str, before: Scene | None) -> str:
    """The same by the words that can be read, where no field tells what it holds."""
    if before is None:
        return ""
    shown, was = _words_on(now.scene), _words_on(before)
    words = [word for word in wanted.split() if len(word) >= 3] or wanted.split()
    new = [word for word in words if shown.count(word) > was.count(word)]
    if len(new) >= 0.6 * len(words) or _reads_alike(wanted, shown) > max(_READ_ALIKE, _reads_alike(wanted, was)):
        return f"“{' '.join(new or words)[:60]}” stands there now"
    return ""


def _words_on(scene: Scene) -> str:
    return " ".join(one.name for one in scene.elements if one.source == "words")


def _reads_alike(wanted: str, shown: str) -> float:
    """How much of a longer text is to be read, 0 to 100, whatever breaks it: a terminal wraps within words."""
    from rapidfuzz import fuzz

    letters = re.sub(r"[\W_]+", "", wanted)
    return fuzz.partial_ratio(letters, re.sub(r"[\W_]+", "", shown)) if len(letters) >= _LONG else 0.0


def _same_in(scene: Scene | None, element: Element) -> Element | None:
    if scene is None:
        return None
    same = [
        one for one in scene.elements if (one.role, one.window, one.app) == (element.role, element.window, element.app)
    ]
    exact = [one for one in same if one.box == element.box]
    named = [one for one in same if one.name == element.name]
    return next(iter((*exact, *named)), None)


def _effects_of_keys(now: GoalState, pressed: list[Move]) -> list[Effects]:
    """What each key did, the last first; a display may show at the end what it showed at the beginning."""
    screens = [move.screen for move in pressed if move.screen is not None]
    pairs = [(screens[at], screens[at + 1]) for at in range(len(screens) - 1)]
    last = [now.effects_of(pressed[-1])] if pressed else []
    between = [
        effects(Scene(one.outline), Scene(other.outline), one.changes, other.changes)
        for one, other in pairs
        if one.outline is not None and other.outline is not None
    ]
    return [*last, *reversed(between)]


def _display(now: GoalState) -> Element | None:
    """What shows a text in the window in front and takes none: a calculator's display."""
    shown = [one for one in now.scene.elements if one.role == "text" and now.scene.in_front(one) and one.trusted]
    return shown[0] if len(shown) == 1 and "editable" not in shown[0].states else None


def describe(element: Element) -> str:
    """A field in words."""
    name = element.label or (element.name if element.role not in TEXTS else "")
    return f"the {element.role or 'text'}{f' “{name[:40]}”' if name else ''}"


def _by_keys(now: GoalState, goal: Type, first: Move, pressed: list[Move]) -> Verdict:
    """Press the text's keys: some windows (calculators, games) take nothing that is pasted."""
    altered = next((one for one in _effects_of_keys(now, pressed) if one.altered or one.changes), now.effects_of(first))
    if len(goal.text) > _MOST_KEYS or not goal.text.isascii():
        if altered.altered or altered.changes:
            return Done(altered.words)
        return Stuck("I typed the text, but nothing that I can see took it.")
    if not pressed and (altered.altered or altered.changes):
        return Done(altered.words)  # it was taken, and turned into something else
    display = _display(now)
    if not pressed and not now.tried("focus") and display is not None:
        return now.click("Pasted text had no effect: give the display the focus.", "focus", display)
    if len(pressed) < len(goal.text):
        char = goal.text[len(pressed)]
        key = _KEY_NAMES.get(char, char)
        return press(f"Pasted text had no effect: press the key {key}.", "keys", key)
    if altered.altered or altered.changes or altered.came:
        return Done(altered.words)
    if now.waits < 1:
        return wait("The keys show no effect yet: wait.", 0.5)
    return Stuck("I typed the text and pressed its keys, but nothing that I can see took it.")
