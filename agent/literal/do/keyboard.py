"""Presses keys, types texts and reads them back, calculates by keys, scrolls and waits."""

import re
from dataclasses import replace
from fractions import Fraction
from functools import partial

from agent.core.geometry import shared
from agent.literal.do.amounts import set_value
from agent.literal.do.known_places import known_place, targets_of
from agent.literal.do.looking import at_once, look
from agent.literal.do.now import Done, Move, Now, OrGoal, Pursuit, Step, Steps, StuckError, opened, until
from agent.literal.do.proof import key_may_close, leads, led_to, misnamed, vanished
from agent.literal.do.wheel import area_named, moved, safe_spot
from agent.literal.find.effects import called
from agent.literal.find.scene import AMOUNTS, BUTTONS, COMBOS, FIELDS, SWITCHES, TEXTS, Scene
from agent.literal.goals import Calculate, Click, Press, Scroll, SetValue, Target, Type, Wait
from agent.literal.language.wording import describe_target
from agent.literal.vocabulary.numbers import amount_of, value_of
from agent.screen.outline import Element
from foundation.configs import load_config

_MOST_SCROLLS, _MOST_UNDOS = 40, 30
#: Longest text that is pressed key by key, and most characters of a sum: a key each.
_MOST_KEYS, _MOST_SIGNS = 24, 28
_TAKES_TEXT = FIELDS | {"spin button", "combo box", "document web", "autocomplete"}
#: Controls that act on a typed text if they have the focus.
_TAKES_KEYS = FIELDS | BUTTONS | SWITCHES | COMBOS | AMOUNTS
#: Fields whose content is reported as a text.
REPORTED = FIELDS - {"terminal", "password text"}
_ONE_LINE_FIELDS = ("search", "find", "filter", "suchen", "suche", "address", "location", "url", "path")
#: From this many letters, a text counts as shown if this share of them matches, in per cent: OCR misreads some.
_LONG, _READ_ALIKE = 12, 80.0
_KEY_NAMES = {"\n": "enter", "\t": "tab", " ": "space"}
#: A number as a calculator shows it.
_NUMBER = re.compile(r"[-−]?\d[\d.,'’\s]*(?:[eE][-+]?\d+)?")


def press_keys(now: Now, goal: Press) -> OrGoal:
    """Press a key combination. A sign that no keyboard has, such as ×, is a button."""
    keys = "+".join(goal.keys)
    if re.fullmatch(r"[^\w\x00-\x7f]", keys) and now.finder.best(Target(keys), BUTTONS) is not None:
        return Click(Target(keys))
    last = next((move for move in reversed(now.earlier) if move.action != "wait"), None)
    if keys == "ctrl+z" and last is not None and last.action == "type" and _is_longer(_text_changed(now, last)):
        return (yield from _take_back(now, last))
    attempt = yield Step.press(f"Press {keys}.", keys, main=True)

    def effect() -> Done | None:
        if not key_may_close(keys) and (gone := vanished(now, attempt)):
            raise StuckError(f"When I pressed {keys}, {gone}.")
        if other := misnamed(now, attempt):
            raise StuckError(f"When I pressed {keys}, the file was called “{other}”.")
        effects = now.effects_of(attempt)
        return Done(f"I pressed {keys}: {effects.words}") if effects else None

    times = 1 if now.last or not leads(goal) else 0
    if done := (yield from until(effect, f"{keys} shows no effect yet: wait and look again.", times)):
        return done
    outcome = led_to(now, attempt)
    words = f": {outcome}" if outcome else ", and nothing shows what came of it"
    return Done(f"I pressed {keys}{words}", verified=bool(outcome))


def _take_back(now: Now, typed: Move) -> Pursuit:
    """Undo until the fields hold what they held before the text was typed: editors undo it word by word.

    Stops when no field is longer than before: another undo would remove what the person wrote.
    """
    held = ""
    for _ in range(_MOST_UNDOS):
        attempt = yield Step.press("Press ctrl+z.", "ctrl+z", main=True)
        yield from until(partial(now.effects_of, attempt), "ctrl+z shows no effect yet: wait.", 1, 0.5)
        if (texts := _text_changed(now, typed)) is None:
            return Done("I pressed ctrl+z until the text was as it was before")
        held = texts[1]
        if not _is_longer(texts) or not now.effects_of(attempt):
            break
    raise StuckError(f"I pressed ctrl+z, and the text holds “{held[:60]}”, which is not what it held before.")


def _is_longer(texts: tuple[str, str] | None) -> bool:
    return texts is not None and len(texts[1]) > len(texts[0])


def scroll(now: Now, goal: Scroll) -> Pursuit:
    """Scroll once, or to the end."""
    where = f" in “{goal.inside}”" if goal.inside else ""

    def is_there() -> bool | None:
        return bool(not goal.inside or now.scene.named_window(goal.inside) or area_named(now, goal.inside)) or None

    yield from look(now, at_once(is_there), Target(inside=goal.inside, name=goal.inside), tabs=False)
    scrolled = False
    for _ in range(_MOST_SCROLLS):
        area = area_named(now, goal.inside) if goal.inside else None
        call: dict[str, object] = {"action": "scroll", "direction": goal.direction, "amount": goal.notches}
        if (spot := safe_spot(now.scene, area)) is not None:
            call["coordinate"] = now.point(*spot)
        turn = yield Step(f"Scroll {goal.direction}.", call, main=True)
        went_on = moved(now, turn)
        scrolled = scrolled or went_on
        if not goal.to_end or not went_on:
            break
    if scrolled:
        return Done(f"I scrolled {goal.direction}{where}" + (" to the end" if goal.to_end else ""))
    if goal.to_end:
        return Done(f"It is at the end already: nothing moved{where} when I scrolled {goal.direction}")
    return Done(f"I scrolled {goal.direction}{where}, and nothing moved", verified=False, on_the_way=True)


def let_pass(_now: Now, goal: Wait) -> Pursuit:
    """Wait."""
    yield Step(f"Wait {goal.seconds:g} s.", {"action": "wait", "seconds": goal.seconds}, main=True)
    return Done(f"I waited {goal.seconds:g} s")


class UnseenError(StuckError):
    """A text was typed, but no field shows it."""


def enter_text(now: Now, goal: Type) -> OrGoal:
    """Type a text. Set a number field instead, because typed digits would be inserted into the present number."""
    if goal.into is None or (field := (yield from _field(now, goal.into))).role != "spin button":
        return (yield from type_text(now, goal))
    if (amount := amount_of(goal.text)) is None:
        raise StuckError(f"{describe_target(goal.into)} takes a number, not “{goal.text[:60]}”.")
    done = yield from set_value(now, SetValue(goal.into, *amount))
    if isinstance(done, Done) and not now.last:  # what comes next may be a key for this field
        yield now.click(f"Back to {describe_target(goal.into)}.", field, main=False)
    return done


def _field(now: Now, into: Target) -> Steps[Element]:
    place = known_place(now, into)
    targets = targets_of(into, place)
    field = yield from look(now, lambda: _field_of(now, into, targets), targets[0], place, elsewhere=True)
    if "disabled" in field.states:
        raise StuckError(f"{describe_target(into)} takes no text now: it is greyed out.")
    return field


def type_text(now: Now, goal: Type) -> Pursuit:
    """Type a text, key by key where there is only a display, and read it back."""
    if goal.into is not None:
        field = yield from _field(now, goal.into)
        yield from give_focus(now, field, describe_target(goal.into), main=True)
    alone = goal.replace or _in_new_dialog(now, goal)
    if alone:
        yield Step.select_all()
    elif goal.into is None and now.earlier and now.earlier[-1].step.call.get("keys") == "ctrl+a":
        alone = True
    short = len(goal.text) <= _MOST_KEYS and goal.text.isascii()
    if goal.into is None and short and (display := _display(now)) is not None:
        return (yield from _into_display(now, goal.text, display))
    first = yield Step.type(f"Type the text ({len(goal.text)} characters).", goal.text, main=True)
    text = first.typed(goal.text)

    def went_in() -> Done | None:
        if gone := vanished(now, first):
            raise StuckError(f"{gone[:1].upper()}{gone[1:]} while I typed.")
        words = _went_in(now, text, first)
        field = field_with(now, text) if words and alone else None
        if field is not None and (held := " ".join((field.value or "").split())) != " ".join(text.split()):
            raise StuckError(f"{called(field)} holds “{held[:60]}”, not only what I typed.")
        return Done(words) if words else None

    if done := (yield from until(went_in, "The text is not visible yet: wait.", 1, 0.5)):
        return done
    if first.failure is not None:
        raise StuckError(f"the text could not be typed: {first.failure}")
    _, took = _text_changed(now, first) or ("", "")
    if took and took != text and text.startswith(took):
        raise StuckError(f"The field took only “{took[:60]}” of what I typed.")
    if (pasted := now.effects_of(first)).altered or pasted.changes:
        return Done(pasted.words)  # the text was accepted and transformed
    raise UnseenError("I typed the text, but nothing that I can see took it.")


def give_focus(now: Now, field: Element, name: str, *, main: bool = False) -> Steps[None]:
    """Click a field until it has the focus. Raises StuckError if another control keeps the focus, as in a dialog."""

    def focused() -> list[Element]:
        taking = (one for one in now.scene.shown(_TAKES_KEYS, without="") if one.source != "words")
        return [one for one in taking if "focused" in one.states]

    def has_focus() -> bool:
        return any(one.role == field.role and one.name == field.name and one.box == field.box for one in focused())

    def may_have_focus() -> bool:
        return not focused() or any(shared(one.box, field.box) is not None for one in focused())

    yield replace(now.click(f"Focus {name}: click it.", field, main=main), until=has_focus)
    if not (yield from until(may_have_focus, f"The focus is not in {name} yet: wait.", 2, 0.5)):
        other = focused()[0]
        where = f" in “{other.window}”" if other.window != field.window else ""
        raise StuckError(f"{called(other)}{where} keeps the focus, so the text would not go into {name}")


def field_with(now: Now, text: str) -> Element | None:
    """Return the focused field if it contains this text."""
    wanted = " ".join(text.split())
    fields = (one for one in now.scene.shown(REPORTED, without="") if "focused" in one.states)
    return next((one for one in fields if wanted in " ".join((one.value or "").split())), None)


def _into_display(now: Now, text: str, display: Element) -> Pursuit:
    """Press the text's keys in a window that only has a display, and read each digit there before the next key."""
    yield now.click("It takes keys, not text: give the display the focus.", display, main=False)
    for at, char in enumerate(text):
        key = _KEY_NAMES.get(char, char)
        yield Step.press(f"Press the key {key}.", key, main=True)
        typed = text[: at + 1]
        words = f"{char} is not visible yet: wait."
        if char.isdigit() and not (yield from until(partial(_reads, now, typed), words, 2, 0.4)):
            held = "; ".join(shown for _, shown in _shown_texts(now.scene)[:2])
            raise StuckError(f"I pressed {key}, but the display holds “{held[:60]}” after “{typed}”.")
    return Done(f"the display has taken “{text}”", verified=any(map(str.isdigit, text)))


def _reads(now: Now, typed: str) -> bool:
    """Return whether the display holds the number that was typed last."""
    number = Fraction(re.findall(r"\d+(?:\.\d+)?", typed)[-1])
    return any(is_number(found, number) for _, shown in _shown_texts(now.scene) for found in _NUMBER.findall(shown))


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


def _text_changed(now: Now, typed: Move) -> tuple[str, str] | None:
    """Return the old and new content of a field in front that changed since a text was typed; None if none changed."""
    for element in now.scene.shown(REPORTED, without=""):
        was = _same_in(typed.scene, element)
        before, held = (was.value or "") if was is not None else "", element.value or ""
        if before != held:
            return before, held
    return None


def _field_of(now: Now, into: Target, targets: list[Target]) -> Steps[Element | None]:
    """Return the field of that name. A search field may have no name."""
    if (found := (yield from now.first(targets, _TAKES_TEXT))) is not None:
        return found
    front = [one for one in now.scene.shown(FIELDS - {"paragraph"}) if one.trusted]
    front = [one for one in front if one.role != "text" or "editable" in one.states]
    front.sort(key=lambda one: -one.box.width * one.box.height)
    name = into.name.casefold()
    if name in _ONE_LINE_FIELDS:
        single = [one for one in front if "multi_line" not in one.states and one.box.height < 60]
        return single[0] if len(single) == 1 else None
    if not name or name in ("text", "editor", "document", "text editor", "window", "text area", "page"):
        return next(iter(front), None)
    if (window := now.scene.named_window(into.name)) is not None:
        return next((one for one in front if now.scene.in_window(one, window)), None)
    return None if now.scene.has_tree else now.finder.best(into, TEXTS)


def _went_in(now: Now, text: str, since: Move) -> str:
    """Describe the element that contains the text since a move; "" for none."""
    wanted = _held(text)
    if not wanted:
        return "; ".join(now.effects_of(since).altered)
    before = since.scene
    for element in sorted(now.scene.elements, key=lambda one: "focused" not in one.states):
        if element.role == "password text":
            was = _same_in(before, element)
            if "focused" in element.states and was is not None and (element.value or "") != (was.value or ""):
                return f"{called(element)} holds as much as was typed"
            continue
        if element.role not in _TAKES_TEXT | {"label", "static", "list item", "table cell"}:
            continue
        held = _held(element.value or (element.name if element.role in TEXTS else ""))
        is_cut = len(held) >= 40 and wanted.startswith(held.removesuffix("…").rstrip()[:200])
        if not (wanted in held or is_cut):
            continue
        was = _same_in(before, element)
        old = _held((was.value or "") if was is not None else "")
        if old.count(wanted[:40]) < held.count(wanted[:40]):
            return f"{called(element)} holds “{wanted[:60]}”"
    return _read_back(now, wanted, before)


def _held(text: str) -> str:
    """Return a text on one line, with the signs that keyboards have: calculators show × for a typed *."""
    signs = load_config("proof.toml")["signs"].items()
    return " ".join(text.translate({ord(shown): typed for shown, typed in signs if not shown.isascii()}).split())


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


def calculate(now: Now, goal: Calculate) -> Pursuit:
    """Enter an expression and read the result."""
    signs = re.sub(r"\s", "", goal.expression)
    result = value_of(signs)
    if result is None or len(signs) > _MOST_SIGNS:
        raise StuckError(f"I cannot calculate “{goal.expression[:60]}”: I know numbers, + - * / ^ and brackets.")
    if now.scene.front_of_kind("calculator") is None:
        name = goal.calculator or "calculator"
        shown = lambda: now.scene.front_of_kind("calculator")  # noqa: E731
        yield from opened(Step.start(f"Open the {name}.", name), shown, name)
    cleared = yield Step.press("Clear the calculator.", "escape")
    for sign in signs:  # the keypad's decimal key enters the separator of the desktop's language
        yield Step.press(f"Enter {sign}.", "kp_decimal" if sign == "." else sign)
    yield Step.press("Calculate it.", "enter", main=True)
    old = {(one.box, shown) for one, shown in _shown_texts(cleared.scene)}
    scenes = [move.scene for move in now.moves[now.begun :]]
    reacted = {one.box for scene in scenes for one, shown in _shown_texts(scene) if (one.box, shown) not in old}

    def read() -> Done | None:
        for element, shown in _shown_texts(now.scene):
            numbers = _NUMBER.findall(shown)
            is_new = element.box in reacted or (element.box, shown) not in old
            if is_new and numbers and is_number(numbers[-1], result) and not _is_input(shown, numbers[-1]):
                number = numbers[-1].strip(" .,")
                return Done(f"{goal.expression} is {number}: the calculator shows “{' '.join(shown.split())[:60]}”")
        return None

    if done := (yield from until(read, "The result is not visible yet: wait.", 3, 0.7)):
        return done
    shows = "; ".join(dict.fromkeys(" ".join(shown.split())[:40] for _, shown in _shown_texts(now.scene)[:3]))
    raise StuckError(f"I entered {goal.expression}, but the calculator does not show the result. It shows: {shows}.")


def _is_input(shown: str, number: str) -> bool:
    """Return whether a number is the end of what was entered: "144÷12" shows no 12."""
    line = shown[: shown.rindex(number)].rpartition("\n")[2].rstrip()
    return re.search(r"[\d)+*/×÷^−-]$", line) is not None


def _shown_texts(scene: Scene) -> list[tuple[Element, str]]:
    """Return the texts in the front window, without those on buttons.

    KCalc's display is not in the accessibility tree, so it comes from OCR.
    """
    return [
        (element, text)
        for element in scene.shown(TEXTS | FIELDS, without="")
        for text in (element.value or "", element.name)
        if text
    ]


def is_number(shown: str, result: Fraction) -> bool:
    """Return whether a number is the result, to the digits shown, in either reading of "." and ","."""
    bare = re.sub(r"[\s'’]", "", shown.replace("−", "-")).strip(".,")
    for point, thousands in (".,", ",."):
        grouped = rf"-?(\d+|\d{{1,3}}({re.escape(thousands)}\d{{3}})+)({re.escape(point)}\d+)?([eE][-+]?\d{{1,3}})?"
        if re.fullmatch(grouped, bare) and _equal(bare.replace(thousands, "").replace(point, "."), result):
            return True
    return False


def _equal(number: str, result: Fraction) -> bool:
    value = Fraction(number)
    digits, _, power = number.lower().partition("e")
    places = len(digits.partition(".")[2])
    # A whole number must be exact. Decimals may be rounded or truncated by the display.
    step = Fraction(0) if places == 0 and not power else Fraction(10) ** (int(power or 0) - places)
    return abs(value - result) <= step
