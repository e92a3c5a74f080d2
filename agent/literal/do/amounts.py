"""Sets numbers: types into spin buttons; clicks or drags sliders and then adjusts them by keys."""

import itertools
import math
import re
from contextlib import suppress
from dataclasses import replace

from agent.core.changes import Change
from agent.literal.do.known_places import known_place, settings_of, targets_of
from agent.literal.do.looking import look
from agent.literal.do.now import Already, Done, Move, Now, OrGoal, Pursuit, Step, Steps, StuckError
from agent.literal.find.finder import PART, WHOLE
from agent.literal.find.scene import AMOUNTS, CHOICES, COMBOS, FIELDS, TEXTS, same_row
from agent.literal.goals import Choose, SetValue, Target
from agent.literal.language.wording import describe_target
from agent.literal.vocabulary.measures import measure_of
from agent.literal.vocabulary.numbers import converted
from agent.literal.vocabulary.places import Place
from agent.screen.outline import Element

_SLIDERS = frozenset({"slider", "dial"})
#: Keys for a slider's minimum and maximum.
_ENDS = ("home", "end")
#: A slider that ends within this share of its range of a limit is at its end.
_NEAR_AN_END = 0.01
#: Most keys pressed on a slider. After pointing, it is near enough for these.
_MOST_KEYS = 24
_MOST_POINTED = 4
#: Waits for a control that disappeared from a busy window.
_MOST_WAITS = 3
#: One step for "bigger" or "smaller" without a number: this share of a number (at least 1) or of a slider's range. Near
#: the end of the slider it is half the way to the end, at least half that share.
_SHARE = 0.1
#: A slider's handle stops short of each end of its box by this share of the box's thickness.
_HANDLE = 0.5
#: PulseAudio's value for 100 %.
_FULL_VOLUME = 65536
#: Most pixels between a control and the unit to its right; the highest minimum of a control that counts in percent.
_BEHIND, _NEARLY_NONE = 60, 10


class _ReachedError(Exception):
    """Raised to end the steps: the control has the wanted number."""

    def __init__(self, done: Done) -> None:
        self.done = done


class _Amount:
    """Brings one control to a number. `why` is prepended to the words of the first step."""

    def __init__(self, now: Now, goal: SetValue, why: str = "") -> None:
        self._now, self._why = now, why
        self._place, self._words = known_place(now, goal.target), describe_target(goal.target)
        self._goal = _as_counted(goal, self._place)
        self.first: float | None = None  # the value before the first move; None if it reported none
        self._move: Move | None = None  # the first move
        self._wanted: float | None = None  # the number to reach
        self._held: float | None = None  # the number before the next step

    def reach(self) -> OrGoal:
        """Yield the steps to the number."""

        def find() -> Steps[Element | Choose | None]:
            return (yield from self.control()) or _as_choice(self._now, self._goal, self._place)

        try:
            found = yield from look(self._now, find, self._goal.target, self._place, elsewhere=True)
        except StuckError:
            if self._place is None or not self._place.is_switch:
                raise
            raise StuckError(f"{self._words} takes no number here: it is the switch “{self._place.control}”.") from None
        if isinstance(found, Choose):
            return found
        try:
            control, held = yield from self._read()
            if control.role not in _SLIDERS:
                return (yield from self._enter(control, self._wanted or 0.0))
            held = yield from self._point(control, held, self._wanted or 0.0)
            return (yield from self._press_keys(control, held, self._wanted or 0.0))
        except _ReachedError as holds:
            return holds.done

    def control(self) -> Steps[Element | None]:
        """Find the control."""
        now, place, targets = self._now, self._place, targets_of(self._goal.target, self._place)
        for least in (WHOLE, PART):
            for target in targets:
                for roles in (AMOUNTS, FIELDS - {"document text", "terminal"}):
                    if (found := (yield from now.the(target, roles, least))) is not None:
                        return found
        # The name may be a heading above a slider and its number. A switch has no number below it.
        for target in targets:
            if not target.name or (place is not None and place.is_switch):
                continue
            held = now.finder.all(Target(role="slider", under=target.name, inside=target.inside), AMOUNTS)
            if held and held[0].element.role in AMOUNTS:
                return held[0].element
        return None

    def _act(self, step: Step) -> Steps[tuple[Element, float]]:
        """Take a step; return the control and its number then. Raises _ReachedError if it is the wanted number."""
        move = yield replace(step, words=self._why + step.words)
        self._why = ""
        if self._move is None:
            self.first, self._move = self._held, move
        return (yield from self._read())

    def _read(self) -> Steps[tuple[Element, float]]:
        """Return the control and its number, as `_act` does."""
        now, goal = self._now, self._goal
        for _ in range(_MOST_WAITS):
            if (control := (yield from self.control())) is not None:
                break
            yield Step.wait(f"{self._words} cannot be read at the moment: wait and look again.")
        if control is None:  # larger text may move it out of sight
            changed = self._changed()
            if changed is not None and changed.after == f"{self._wanted:g}":
                raise _ReachedError(Done(str(changed)))
            raise StuckError(f"{self._words} is not visible any more.")
        self._held = held = self._kept(number_of(control))
        if self._wanted is None:
            amount = _amount(goal, control, self._place, now)
            self._wanted = _wanted(goal, amount, control, held or 0.0, self._place)
        if done := self._is_there(control, held):
            if self._wanted is not None and (changed := self._changed()) is not None:
                _check(goal, self.first, self._wanted, changed)
            raise _ReachedError(done)
        return control, held or 0.0

    def _is_there(self, control: Element, held: float | None) -> Done | None:
        """Return Done if the control has the wanted number, None if a step is needed. Raises StuckError."""
        goal, words, wanted = self._goal, self._words, self._wanted
        if wanted is None or (held is None and control.role in AMOUNTS):
            raise StuckError(f"{words} does not report its value.")
        if "disabled" in control.states and not (held is not None and _equal(held, wanted, goal, control)):
            raise StuckError(f"{words} cannot be set now: it is greyed out.")
        if control.limits is not None and not control.limits[0] - 1e-9 <= wanted <= control.limits[1] + 1e-9:
            least, most = control.limits
            if goal.value is not None:
                raise StuckError(f"{words} takes {least:g} to {most:g}, not {wanted:g}.")
            self._wanted = wanted = min(max(wanted, least), most)
            if held is not None and self._move is None and _equal(held, wanted, goal, control):
                raise StuckError(f"{words} is at its limit already: {held:g}.")
        if held is not None and _equal(held, wanted, goal, control):
            if self._move is None:
                return Already(f"{words} holds {held:g} already")
            return Done("; ".join((f"{words} holds {held:g}", *self._now.effects_of(self._move).changes[:2])))
        return None

    def _changed(self) -> Change | None:
        """Return how the place's setting changed since the first move."""
        changes = settings_of(self._now, self._place, self._move) if self._move is not None else iter(())
        return next((change for change, _ in changes), None)

    def _kept(self, held: float | None) -> float | None:
        """Return the number in force: a slider between two numbers may be kept as the whole number below it."""
        if held is None or held.is_integer() or self._move is None or self.first is None:
            return held
        for change in self._now.changed_since(self._move, "setting"):
            before, after = _numbers(change)
            if after is not None and after == int(held) and before == int(self.first):
                return after
        return held

    def _enter(self, control: Element, wanted: float) -> Pursuit:
        """Type the number into its field, and leave the field to apply it."""
        yield from self._act(self._now.click(f"Focus {self._words}: click it.", control))
        yield from self._act(Step.press("Select the number that stands there.", "ctrl+a"))
        yield from self._act(Step.press("Remove it.", "backspace"))
        yield from self._act(Step.type(f"Type {wanted:.15g}.", f"{wanted:.15g}", main=True))
        yield from self._act(Step.press("Leave the field.", "tab"))
        yield from self._act(Step.wait("The number may be taken late: wait."))
        content = "nothing that I can read" if self._held is None else f"{self._held:g}"
        raise StuckError(f"I typed {wanted:g}, but {self._words} holds {content}.")

    def _point(self, control: Element, held: float, wanted: float) -> Steps[float]:
        """Bring a slider near the number by the pointer. Return the number that it holds then."""
        now, first = self._now, held
        tall, (least, most) = _is_tall(control), control.limits or (0.0, 100.0)
        span = most - least or 1.0
        x, y = _spot(control, wanted, least, span)
        place = y if tall else x  # along the slider
        control, held = yield from self._act(now.click_at(f"Point at {wanted:g} on it.", x, y, main=True))
        goal = self._goal
        is_relative = goal.unit == "%" or goal.value is None or goal.direction
        if abs(held - (least + most - wanted)) < 0.1 * span < abs(held - wanted) and is_relative:
            raise StuckError(f"{self._words} counts backwards, so I do not know which of its ends is more.")
        slope = (-control.box.height if tall else control.box.width) / span  # pixels a unit, as far as it is known
        ends = [_spot(control, end, least, span)[int(tall)] for end in (least, most)]
        for _ in range(1, _MOST_POINTED):
            if abs(held - wanted) / span <= 2 / max(control.box.width, control.box.height, 1):
                break  # within two pixels, keys are better than pointing
            x, y = _spot(control, wanted, least, span)
            before, old = place, held
            if held == first:  # a click did not move it: drag it
                here, there = now.point(*_spot(control, held, least, span)), now.point(x, y)
                text, place = f"Drag it to {wanted:g}.", y if tall else x
            else:
                # The handle is under the pointer now. Drag it from there: a click on the handle has no effect.
                # The numbers of some sliders do not grow evenly.
                place = min(max(before + (wanted - held) * slope, min(ends)), max(ends))
                here, there = [now.point(x, at) if tall else now.point(at, y) for at in (before, place)]
                text = f"It holds {held:g}: drag it to {wanted:g}."
            call = {"action": "drag", "start_coordinate": here, "end_coordinate": there}
            control, held = yield from self._act(Step(text, call, main=True))
            if abs(held - old) > 1e-9 and place != before:
                slope = (place - before) / (held - old)
        return held

    def _press_keys(self, control: Element, held: float, wanted: float) -> Pursuit:
        """Bring a slider to the number by keys."""
        more, less = ("up", "down") if _is_tall(control) else ("right", "left")
        if (limits := control.limits) is not None and wanted in limits:
            key = _ENDS[0 if wanted == limits[0] else 1]
            control, held = yield from self._act(Step.press(f"It holds {held:g}: press {key}.", key))
            if abs(held - wanted) <= _NEAR_AN_END * (limits[1] - limits[0]):  # some sliders never reach their limit
                return Done(f"{self._words} holds {held:g}")
        values: list[float] = []  # before each key press, since the last jump to an end
        keys, is_from_end = 0, False
        while keys < _MOST_KEYS and not (keys > 1 and self._now.moves[-1].has("no_effect")):
            key = less if wanted <= held else more
            text = f"It holds {held:g}: press {key}."
            values.append(held)
            sides = [value > wanted for value in values if value != wanted]
            if sum(one != other for one, other in itertools.pairwise(sides)) > 1:  # the number lies between two steps
                if self._goal.value is None:
                    return Done(f"{self._words} holds {held:g}")
                end = None if is_from_end else _end_in_steps_of(control, values, wanted, _MOST_KEYS - keys - 1)
                if end is None:
                    raise StuckError(f"{self._words} has no step at {wanted:g}: it holds {held:g}.")
                key, is_from_end, values = end, True, []
                text = f"Whole steps lead from {end} to {wanted:g}: press {end}."
            control, held = yield from self._act(Step.press(text, key))
            if key in (more, less) and (held - values[-1] if values else 0) * (1 if key == more else -1) < 0:
                more, less = less, more  # it counts backwards
            keys += 1
        raise StuckError(f"{self._words} holds {held:g}, and I could not bring it to {wanted:g}.")


def set_value(now: Now, goal: SetValue) -> OrGoal:
    """Set a control to a number. Restore the old value if that fails."""
    amount = _Amount(now, goal)
    try:
        return (yield from amount.reach())
    except StuckError as error:
        failed, first = error, amount.first
    control = yield from amount.control()
    if control is None or first is None or first == number_of(control):
        raise failed
    back = None
    with suppress(StuckError):
        back = yield from _Amount(now, SetValue(goal.target, first), f"{failed} Put back what it held before. ").reach()
    if not isinstance(back, Done):
        raise StuckError(f"{failed} It held {first:g} before, and I could not put that back.")
    raise StuckError(f"{failed} I put back what it held before: {first:g}.")


def _check(goal: SetValue, first: float | None, wanted: float, changed: Change) -> None:
    """Raise StuckError if the setting went the other way than "bigger" or "smaller" says, or took another number."""
    before, after = _numbers(changed)
    if before is None or after is None:  # it was not set before
        return
    words = describe_target(goal.target)
    if goal.direction and (after - before) * (1 if goal.direction == "up" else -1) < 0:
        raise StuckError(f"{words} went the other way: {changed}.")
    if goal.value is None or goal.direction or goal.unit == "%":
        return
    if before == first and before.is_integer() and after == int(wanted) != wanted:
        raise StuckError(f"{words} takes whole numbers, not {wanted:g}.")


def _numbers(change: Change) -> tuple[float | None, float | None]:
    """Return the values before and after a change as numbers; None where a value is not a number."""

    def number(text: str | None) -> float | None:
        with suppress(ValueError):
            return float(text or "")
        return None

    return number(change.before), number(change.after)


def _as_choice(now: Now, goal: SetValue, place: Place | None) -> Choose | None:
    """Return the number as a choice if the control is a combo box."""
    if goal.value is None or goal.direction:
        return None
    combo = next((one for one in targets_of(goal.target, place) if now.finder.best(one, COMBOS) is not None), None)
    if combo is None:
        return None
    number = f"{goal.value:g}"
    ways = [f"{number}{goal.unit}", f"{number} {goal.unit}".strip(), *(("Full", "Maximum") if goal.unit == "%" else ())]
    choice = next((way for way in ways if now.finder.all(Target(way), CHOICES | TEXTS)), ways[0])
    return Choose(choice, goal.target)


def number_of(element: Element) -> float | None:
    """Return the number that a control shows; None if it reports none."""
    for text in (element.value, element.name if element.role in FIELDS else None):
        digits = (text or "").strip().replace("\u2212", "-").rstrip("%°KkxpPXts \u00a0")
        with suppress(ValueError):
            return float(digits.replace(",", "."))
    return None


def _amount(goal: SetValue, control: Element, place: Place | None, now: Now) -> float | None:
    """Return the goal's number in the control's unit. Raises StuckError if it cannot be converted to that unit."""
    amount, unit, limits = goal.value, goal.unit, control.limits
    plain = amount is not None and not unit and not goal.direction
    if place is not None and place.unit == "dpi" and plain and "dpi" not in goal.target.name.casefold():
        raise StuckError(
            f"{describe_target(goal.target)} is set in dots per inch here ({control.value} now): "
            "say “set the DPI to” a number, or “make the text bigger”."
        )
    if amount is None or not unit:
        return amount
    texts = [control.name, control.label, control.value or "", goal.target.name]
    texts += [place.unit, place.control, place.under] if place is not None else []
    texts += [
        one.name for one in now.scene.texts
        if same_row(one.box, control.box) and 0 <= one.box.left - control.box.right <= _BEHIND
    ]  # fmt: skip
    words = re.findall(r"[^\W\d_]+|[%°]", re.sub(r"\b(?:percent|prozent)\b", "%", " ".join(texts).casefold()))
    if unit == "%" and limits is not None and limits[1] >= _FULL_VOLUME:
        return amount * _FULL_VOLUME / 100
    if unit == "%" and limits is not None and "%" not in words:
        return _percent(goal, control, amount, limits, known=place is not None)
    value = amount if unit == "%" else converted(amount, unit, words)
    if value is None:
        quantity = f"{amount:g} {unit}"
        raise StuckError(
            f"I do not know how much “{quantity}” is for {describe_target(goal.target)}: say the number alone."
        )
    return value


def _as_counted(goal: SetValue, place: Place | None) -> SetValue:
    """Return the goal for the control. A control that counts milliseconds has less of them for more speed."""
    if place is None or place.unit != "ms" or measure_of(goal.target.name) != "speed":
        return goal
    if goal.direction:
        return replace(goal, direction="down" if goal.direction == "up" else "up")
    return replace(goal, value=100 - goal.value) if goal.value is not None and goal.unit == "%" else goal


def _percent(goal: SetValue, control: Element, amount: float, limits: tuple[float, float], *, known: bool) -> float:
    """Return the number for a percentage. Raises StuckError if the control takes no percentage.

    `known`: the control is in the tables, which give the unit "%" for number fields that count in percent.
    """
    least, most = limits
    slides = control.role in _SLIDERS
    if 0 <= least <= _NEARLY_NONE and 100 <= most <= 500 and (slides or not known):
        return amount
    if slides or (amount in (0, 100) and not goal.direction):
        return (0.0 if goal.direction else least) + (most - least) * amount / 100
    raise StuckError(f"{describe_target(goal.target)} takes {least:g} to {most:g}, and no percentage.")


def _wanted(goal: SetValue, amount: float | None, control: Element, held: float, place: Place | None) -> float | None:
    """Return the number to reach; a relative goal is added to the current value."""
    if place is not None and place.unset:  # an unset control may show less than the value in force
        held = max(held, place.unset) if goal.direction == "up" else held
    if not goal.direction:
        return amount
    if amount is None:
        if control.role in _SLIDERS and control.limits is not None:
            least, most = control.limits
            room = held - least if goal.direction == "down" else most - held
            amount = max(min(_SHARE * (most - least), room / 2), _SHARE / 2 * (most - least))
        else:
            amount = max(1.0, float(round(_SHARE * abs(held))))
    return held + amount if goal.direction == "up" else held - amount


def _equal(held: float, wanted: float, goal: SetValue, control: Element) -> bool:
    """Return whether a control has the wanted number. A slider may miss it by half a digit, or a quarter of a step."""
    span = 0.0 if control.limits is None else control.limits[1] - control.limits[0]
    if control.role not in _SLIDERS:
        return math.isclose(held, wanted, abs_tol=1e-6)
    if goal.value is None:
        return abs(held - wanted) < 0.25 * _SHARE * span
    decimals = len(f"{goal.value:g}".partition(".")[2])
    digit = span / 100 if goal.unit == "%" else min(10.0**-decimals, span / 100)
    if wanted in (control.limits or ()):
        digit = min(digit, _NEAR_AN_END / 10 * span)
    return abs(held - wanted) < max(0.5 * digit, 1e-6 * span)


def _end_in_steps_of(control: Element, values: list[float], wanted: float, most: int) -> str | None:
    """Return the key (home or end) of an end from which under `most` whole steps lead to the number; None for none."""
    steps = [abs(one - other) for one, other in itertools.pairwise(values) if one != other]
    for end, key in zip(control.limits or (), _ENDS, strict=False):
        count = abs(wanted - end) / min(steps) if steps else most
        if count < most and math.isclose(count, round(count), abs_tol=1e-3):
            return key
    return None


def _is_tall(control: Element) -> bool:
    return control.box.height > 1.5 * control.box.width


def _spot(control: Element, value: float, least: float, span: float) -> tuple[float, float]:
    """Return the position of a slider's handle for a number."""
    box = control.box
    share = min(1.0, max(0.0, (value - least) / span))
    if _is_tall(control):
        inset = min(box.width, 20) * _HANDLE
        return box.left + box.width / 2, box.bottom - inset - share * (box.height - 2 * inset)
    inset = min(box.height, 20) * _HANDLE
    return box.left + inset + share * (box.width - 2 * inset), box.top + box.height / 2
