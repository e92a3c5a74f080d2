"""Types into the focused element or a named field, and reads the text back."""

import re
from fractions import Fraction
from functools import partial

from agent.literal.do.known_places import known_place
from agent.literal.do.looking import look
from agent.literal.do.now import Done, Move, Now, Pursuit, Steps, Stuck, Verdict, press, type_in, until
from agent.literal.do.proof import vanished
from agent.literal.do.sums import NUMBER, is_number, shown_texts
from agent.literal.do.toggling import targets_of
from agent.literal.find.scene import FIELDS, TEXTS, Scene
from agent.literal.goals import Target, Type
from agent.literal.language.wording import describe_target
from agent.screen.outline import Element

#: Longest text that is pressed key by key.
_MOST_KEYS = 24
_TAKES_TEXT = FIELDS | {"spin button", "combo box", "document web", "autocomplete"}
_SEARCH = ("search", "find", "filter", "suchen", "suche")
#: From this many letters, a text counts as shown if this share of them matches, in per cent: OCR misreads some.
_LONG, _READ_ALIKE = 12, 80.0
_KEY_NAMES = {"\n": "enter", "\t": "tab", " ": "space"}


class Unseen(Stuck):
    """A text was typed, but no field shows it."""


def type_text(now: Now, goal: Type) -> Pursuit:
    """Type a text, key by key where there is only a display, and read it back."""
    if goal.into is not None:
        into, place = goal.into, known_place(now, goal.into)
        targets = targets_of(into, place)
        field = yield from look(now, lambda: _field_of(now, into, targets), targets[0], place)
        if isinstance(field, Stuck):
            return field
        if "disabled" in field.states:
            return Stuck(f"{describe_target(into)} takes no text now: it is greyed out.")
        yield now.click(f"Focus {describe_target(into)}: click it.", field)
    alone = goal.replace or _in_new_dialog(now, goal)
    if alone:
        yield press("Select what stands there, to replace it.", "ctrl+a")
    elif goal.into is None and now.earlier and now.earlier[-1].step.call.get("keys") == "ctrl+a":
        alone = True
    short = len(goal.text) <= _MOST_KEYS and goal.text.isascii()
    if goal.into is None and short and (display := _display(now)) is not None:
        return (yield from _into_display(now, goal.text, display))
    first = yield type_in(f"Type the text ({len(goal.text)} characters).", goal.text, main=True)

    def went_in() -> Verdict | None:
        if gone := vanished(now, first):
            return Stuck(f"{gone[:1].upper()}{gone[1:]} while I typed.")
        words = _went_in(now, goal.text, first)
        if words and alone and (more := _holds_more(now, goal.text)) is not None:
            held = " ".join((more.value or "").split())[:60]
            return Stuck(f"{_describe(more)} holds “{held}”, not only what I typed.")
        return Done(words) if words else None

    verdict = yield from until(went_in, "The text is not to be seen yet: wait.", 1, 0.5)
    changed = text_changed(now, first) if verdict is None else None
    if changed is not None and changed[1] and changed[1] != goal.text and goal.text.startswith(changed[1]):
        return Stuck(f"The field took only “{changed[1][:60]}” of what I typed.")
    if verdict is None and ((pasted := now.effects_of(first)).altered or pasted.changes):
        return Done(pasted.words)  # the text was accepted and transformed
    return verdict or Unseen("I typed the text, but nothing that I can see took it.")


def _into_display(now: Now, text: str, display: Element) -> Pursuit:
    """Press the text's keys in a window that only has a display, and read each digit there before the next key."""
    yield now.click("It takes keys, not text: give the display the focus.", display, main=False)
    for at, char in enumerate(text):
        key = _KEY_NAMES.get(char, char)
        yield press(f"Press the key {key}.", key, main=True)
        typed = text[: at + 1]
        words = f"{char} is not to be seen yet: wait."
        if char.isdigit() and not (yield from until(partial(_reads, now, typed), words, 2, 0.4)):
            held = "; ".join(shown for _, shown in shown_texts(now.scene)[:2])
            return Stuck(f"I pressed {key}, but the display holds “{held[:60]}” after “{typed}”.")
    return Done(f"the display has taken “{text}”", verified=any(map(str.isdigit, text)))


def _reads(now: Now, typed: str) -> bool:
    """Return whether the display holds the number that was typed last."""
    number = Fraction(re.findall(r"\d+(?:\.\d+)?", typed)[-1])
    return any(is_number(found, number) for _, shown in shown_texts(now.scene) for found in NUMBER.findall(shown))


def _in_new_dialog(now: Now, goal: Type) -> bool:
    """Return whether a dialog has just opened with a selected text in its field, which is to be replaced."""
    came, front = next((move for move in reversed(now.earlier) if move.step.main), None), now.scene.front
    if goal.into is not None or came is None or front is None:
        return False
    if any((window.app, window.title) == (front.app, front.title) for window in came.scene.windows):
        return False
    if now.scene.is_late:
        return True
    return any(  # any such field, because the focus is often reported late
        one.value and one.box.height < 60 for one in now.scene.shown(FIELDS, without="multi_line")
    )


def _holds_more(now: Now, text: str) -> Element | None:
    """Return the focused field if it contains more than the text."""
    wanted = " ".join(text.split())
    for one in now.scene.shown(FIELDS - {"terminal", "password text"}, without=""):
        held = " ".join((one.value or "").split())
        if "focused" in one.states and wanted in held and held != wanted:
            return one
    return None


def text_changed(now: Now, typed: Move) -> tuple[str, str] | None:
    """Return the old and new content of a field in front that changed since a text was typed; None if none changed."""
    for element in now.scene.shown(FIELDS - {"terminal", "password text"}, without=""):
        was = _same_in(typed.scene, element)
        before, held = (was.value or "") if was is not None else "", element.value or ""
        if before != held:
            return before, held
    return None


def _field_of(now: Now, into: Target, targets: list[Target]) -> Steps[Element | None]:
    """Return the field of that name. A search field may have no name."""
    for target in targets:
        if (found := (yield from now.the(target, _TAKES_TEXT))) is not None:
            return found
    front = [one for one in now.scene.shown(FIELDS - {"paragraph"}) if one.trusted]
    front = [one for one in front if one.role != "text" or "editable" in one.states]
    front.sort(key=lambda one: -one.box.width * one.box.height)
    name = into.name.casefold()
    if name in _SEARCH or name in ("address", "location", "url", "path"):
        single = [one for one in front if "multi_line" not in one.states and one.box.height < 60]
        return single[0] if len(single) == 1 else None
    if not name or name in ("text", "editor", "document", "text editor", "window", "text area", "page"):
        return next(iter(front), None)
    if (window := now.scene.named_window(into.name)) is not None:
        return next((one for one in front if now.scene.in_window(one, window)), None)
    return None if now.scene.has_tree else now.finder.best(into, TEXTS)


def _went_in(now: Now, text: str, since: Move) -> str:
    """Describe the element that contains the text since a move; "" for none."""
    wanted = " ".join(text.split())
    if not wanted:
        return "; ".join(now.effects_of(since).altered)
    before = since.scene
    for element in sorted(now.scene.elements, key=lambda one: "focused" not in one.states):
        if element.role == "password text":
            was = _same_in(before, element)
            if "focused" in element.states and was is not None and (element.value or "") != (was.value or ""):
                return f"{_describe(element)} holds as much as was typed"
            continue
        if element.role not in _TAKES_TEXT | {"label", "static", "list item", "table cell"}:
            continue
        held = " ".join((element.value or (element.name if element.role in TEXTS else "")).split())
        if not _holds(held, wanted):
            continue
        was = _same_in(before, element)
        old = " ".join(((was.value or "") if was is not None else "").split())
        if old.count(wanted[:40]) < held.count(wanted[:40]):
            return f"{_describe(element)} holds “{wanted[:60]}”"
    return _read_back(now, wanted, before)


def _holds(held: str, wanted: str) -> bool:
    """Return whether a field contains a text; the reported value may be truncated."""
    return wanted in held or (len(held) >= 40 and wanted.startswith(held.removesuffix("…").rstrip()[:200]))


def _read_back(now: Now, wanted: str, before: Scene) -> str:
    """As `_went_in`, by OCR words, for fields that do not report their value."""
    shown, was = _words_on(now.scene), _words_on(before)
    words = [word for word in wanted.split() if len(word) >= 3] or wanted.split()
    new = [word for word in words if shown.count(word) > was.count(word)]
    if len(new) >= 0.6 * len(words) or _reads_alike(wanted, shown) > max(_READ_ALIKE, _reads_alike(wanted, was)):
        return f"“{' '.join(new or words)[:60]}” stands there now"
    return ""


def _words_on(scene: Scene) -> str:
    return " ".join(one.name for one in scene.elements if one.source == "words")


def _reads_alike(wanted: str, shown: str) -> float:
    """Return how much of a longer text is shown, 0 to 100, without regard to line breaks: terminals wrap in words."""
    from rapidfuzz import fuzz

    letters = re.sub(r"[\W_]+", "", wanted)
    return fuzz.partial_ratio(letters, re.sub(r"[\W_]+", "", shown)) if len(letters) >= _LONG else 0.0


def _same_in(scene: Scene, element: Element) -> Element | None:
    place = (element.role, element.window, element.app)
    same = [one for one in scene.elements if (one.role, one.window, one.app) == place]
    exact = [one for one in same if one.box == element.box]
    return next(iter(exact or [one for one in same if one.name == element.name]), None)


def _display(now: Now) -> Element | None:
    """Return the read-only text in the front window, such as a calculator's display."""
    shown = [one for one in now.scene.shown({"text"}, without="") if one.trusted]
    return shown[0] if len(shown) == 1 and "editable" not in shown[0].states else None


def _describe(element: Element) -> str:
    """Describe a field."""
    name = element.label or (element.name if element.role not in TEXTS else "")
    return f"the {element.role or 'text'}{f' “{name[:40]}”' if name else ''}"
