"""Sets numbers: types into spin buttons; clicks or drags sliders and then adjusts them by keys."""

import itertools
import math
import re
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import TypeAlias

from agent.core.changes import Change
from agent.literal.do.choosing import OrGoal
from agent.literal.do.known_places import known_place, settings_of
from agent.literal.do.looking import look
from agent.literal.do.now import Already, Done, Move, Now, Step, Steps, Stuck, Verdict, press, type_in, wait
from agent.literal.do.toggling import targets_of
from agent.literal.find.finder import PART, WHOLE
from agent.literal.find.scene import AMOUNTS, CHOICES, COMBOS, FIELDS, TEXTS, same_row
from agent.literal.goals import Choose, SetValue, Target
from agent.literal.language.wording import describe_target
from agent.literal.vocabulary.numbers import converted
from agent.literal.vocabulary.places import Place
from agent.screen.outline import Element

#: Keys for a slider's minimum and maximum.
_ENDS = ("home", "end")
#: Most keys pressed on a slider. Pointing comes near enough for these.
_MOST_KEYS = 24
_MOST_POINTED = 4
#: Waits for a control that disappeared from a busy window.
_MOST_WAITS = 3
#: One step for "bigger" or "smaller" without a number: of a slider's range, or of a number, but at least 1.
_SHARE = 0.1
#: A slider's handle stops short of each end of its box by this share of the box's thickness.
_HANDLE = 0.5
#: PulseAudio's value for 100 %.
_FULL_VOLUME = 65536
#: Most pixels between a control and the unit to its right; the highest minimum of a control that counts in percent.
_BEHIND, _NEARLY_NONE = 60, 10


#: Yields the steps towards a number, or the verdict; receives the control and its number before each step.
_Mover: TypeAlias = Generator[Step | Verdict, tuple[Element, float | None], None]
_BEGIN = Stuck("")  # what a mover yields first, to receive the control


@dataclass
class _Track:
    """Progress on one control."""

    first: float | None = None  # its value before the first move
    move: Move | None = None  # the first move
    wanted: float | None = None  # the number to reach


def set_value(now: Now, goal: SetValue) -> OrGoal:
    """Set a control to a number. Restore the old value if that fails."""
    track = _Track()
    end = yield from _approach(now, goal, track)
    control = yield from _control(now, goal, known_place(now, goal.target))
    if not isinstance(end, Stuck) or control is None or track.first in (None, number_of(control)):
        return end
    first = track.first or 0.0
    back = yield from _approach(
        now, SetValue(goal.target, first), _Track(), f"{end.words} Put back what it held before. "
    )
    if isinstance(back, Done):
        return Stuck(f"{end.words} I put back what it held before: {first:g}.")
    return Stuck(f"{end.words} It held {first:g} before, and I could not put that back.")


def _approach(now: Now, goal: SetValue, track: _Track, why: str = "") -> Generator[Step, Move, Verdict | Choose]:
    """Yield the steps towards a number; `why` is prepended to the words of the first."""
    place, words = known_place(now, goal.target), describe_target(goal.target)

    def find() -> Steps[Element | Choose | None]:
        return (yield from _control(now, goal, place)) or _as_choice(now, goal, place)

    found = yield from look(now, find, goal.target, place)
    if isinstance(found, Stuck) and place is not None and place.is_switch:
        return Stuck(f"{words} takes no number here: it is the switch “{place.control}”.")
    if isinstance(found, Choose | Stuck):
        return found
    mover: _Mover | None = None
    while True:
        for _ in range(_MOST_WAITS):
            if (control := (yield from _control(now, goal, place))) is not None:
                break
            yield wait(f"{words} cannot be read at the moment: wait and look again.")
        if control is None:  # larger text may move it out of sight
            changed = _changed(now, place, track)
            if changed is not None and changed.after == f"{track.wanted:g}":
                return Done(str(changed))
            return Stuck(f"{words} is not to be seen any more.")
        held = number_of(control)
        if track.wanted is None:
            amount = _amount(goal, control, place, now)
            if isinstance(amount, Stuck):
                return amount
            track.wanted = _wanted(goal, amount, control, held or 0.0, place)
        if (end := _end(now, goal, track, control, held)) is not None:
            return end if isinstance(end, Stuck) else _checked(goal, end, track, _changed(now, place, track))
        if mover is None:
            mover = (_slide if control.role in ("slider", "dial") else _enter)(now, goal, track.wanted or 0.0)
            next(mover)
        if not isinstance(step := mover.send((control, held)), Step):
            return step
        move = yield replace(step, words=why + step.words)
        why = ""
        if track.move is None:
            track.first, track.move = held, move
            # `held` is None if an entry reported no number before.


def _end(now: Now, goal: SetValue, track: _Track, control: Element, held: float | None) -> Verdict | None:
    """Return Done if a control has the wanted number, Stuck if it cannot; None if a step is needed."""
    words = describe_target(goal.target)
    if held is None and control.role in AMOUNTS:
        return Stuck(f"{words} does not tell what it holds.")
    wanted = track.wanted
    if wanted is None:
        return Stuck(f"{words} does not tell what it holds.")
    if control.limits is not None and not control.limits[0] - 1e-9 <= wanted <= control.limits[1] + 1e-9:
        least, most = control.limits
        if goal.value is not None:
            return Stuck(f"{words} takes {least:g} to {most:g}, not {wanted:g}.")
        track.wanted = wanted = min(max(wanted, least), most)
        if held is not None and track.move is None and _equal(held, wanted, goal, control):
            return Stuck(f"{words} is at its limit already: {held:g}.")
    if held is not None and _equal(held, wanted, goal, control):
        if track.move is None:
            return Already(f"{words} holds {held:g} already")
        return Done("; ".join((f"{words} holds {held:g}", *now.effects_of(track.move).changes[:2])))
    if "disabled" in control.states:
        return Stuck(f"{words} cannot be set now: it is greyed out.")
    return None


def _changed(now: Now, place: Place | None, track: _Track) -> Change | None:
    """Return how the place's setting changed since the first move."""
    return next((one for one, _ in settings_of(now, place, track.move)), None) if track.move is not None else None


def _checked(goal: SetValue, done: Done, track: _Track, changed: Change | None) -> Verdict:
    """Return Done, unless the setting went the other way than "bigger" or "smaller" says, or took another number."""
    try:
        before, after = (float(value or "") for value in (changed.before, changed.after)) if changed else (0.0, 0.0)
    except ValueError:  # it was not set before
        return done
    words = describe_target(goal.target)
    if goal.direction and (after - before) * (1 if goal.direction == "up" else -1) < 0:
        return Stuck(f"{words} went the other way: {changed}.")
    wanted = track.wanted
    if wanted is None or goal.value is None or goal.direction or goal.unit == "%":
        return done
    if before == track.first and before.is_integer() and after == int(wanted) != wanted:
        return Stuck(f"{words} takes whole numbers, not {wanted:g}.")
    return done


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
        if text is None:
            continue
        digits = text.strip().replace("\u2212", "-").rstrip("%°KkxpPXts \u00a0")
        try:
            return float(digits.replace(",", "."))
        except ValueError:
            continue
    return None


def _control(now: Now, goal: SetValue, place: Place | None) -> Steps[Element | None]:
    for least in (WHOLE, PART):
        for target in targets_of(goal.target, place):
            for roles in (AMOUNTS, FIELDS - {"document text", "terminal"}):
                if (found := (yield from now.the(target, roles, least))) is not None:
                    return found
    # The name may be a heading above a slider and its number. A switch has no number below it.
    for target in targets_of(goal.target, place):
        if not target.name or (place is not None and place.is_switch):
            continue
        held = now.finder.all(Target(role="slider", under=target.name, inside=target.inside), AMOUNTS)
        if held and held[0].element.role in AMOUNTS:
            return held[0].element
    return None


def _amount(goal: SetValue, control: Element, place: Place | None, now: Now) -> float | Stuck | None:
    """Return the goal's number in the control's unit; Stuck if it cannot be converted to that unit."""
    amount, unit, limits = goal.value, goal.unit, control.limits
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
        return Stuck(
            f"I do not know how much “{quantity}” is for {describe_target(goal.target)}: say the number alone."
        )
    return value


def _percent(
    goal: SetValue, control: Element, amount: float, limits: tuple[float, float], *, known: bool
) -> float | Stuck:
    """Return the number for a percentage; Stuck if the control takes no percentage.

    `known`: the control is in the tables, which give the unit "%" for number fields that count in percent.
    """
    least, most = limits
    slides = control.role in ("slider", "dial")
    if 0 <= least <= _NEARLY_NONE and 100 <= most <= 500 and (slides or not known):
        return amount
    if slides or (amount in (0, 100) and not goal.direction):
        return (0.0 if goal.direction else least) + (most - least) * amount / 100
    return Stuck(f"{describe_target(goal.target)} takes {least:g} to {most:g}, and no percentage.")


def _wanted(goal: SetValue, amount: float | None, control: Element, held: float, place: Place | None) -> float | None:
    """Return the number to reach; a relative goal is added to the current value."""
    if place is not None and place.unset:  # an unset control may show less than the value in force
        held = max(held, place.unset) if goal.direction == "up" else held
    if not goal.direction:
        return amount
    if amount is None:
        if control.role in ("slider", "dial") and control.limits is not None:
            amount = _SHARE * (control.limits[1] - control.limits[0])
        else:
            amount = max(1.0, float(round(_SHARE * abs(held))))
    return held + amount if goal.direction == "up" else held - amount


def _equal(held: float, wanted: float, goal: SetValue, control: Element) -> bool:
    """Return whether a control has the wanted number. A slider may miss it by half of its last digit."""
    span = 0.0 if control.limits is None else control.limits[1] - control.limits[0]
    if control.role not in ("slider", "dial"):
        return math.isclose(held, wanted, abs_tol=1e-6)
    if goal.value is None:
        return abs(held - wanted) < 0.25 * _SHARE * span
    decimals = len(f"{goal.value:g}".partition(".")[2])
    digit = span / 100 if goal.unit == "%" else min(10.0**-decimals, span / 100)
    return abs(held - wanted) < max(0.5 * digit, 1e-6 * span)


def _enter(now: Now, goal: SetValue, wanted: float) -> _Mover:
    """Type the number into its field, and leave the field to apply it."""
    words = describe_target(goal.target)
    control, held = yield _BEGIN
    yield now.click(f"Focus {words}: click it.", control)
    yield press("Select the number that stands there.", "ctrl+a")
    yield press("Remove it.", "backspace")
    yield type_in(f"Type {wanted:g}.", f"{wanted:g}", main=True)
    yield press("Leave the field.", "tab")
    _, held = yield wait("The number may be taken late: wait.")
    content = "nothing that I can read" if held is None else f"{held:g}"
    yield Stuck(f"I typed {wanted:g}, but {words} holds {content}.")


def _slide(now: Now, goal: SetValue, wanted: float) -> _Mover:
    """Move a slider to the number, by the pointer first and then by keys."""
    words = describe_target(goal.target)
    control, number = yield _BEGIN
    first = number or 0.0
    tall, (least, most) = _is_tall(control), control.limits or (0.0, 100.0)
    span = most - least or 1.0
    x, y = _spot(control, wanted, least, span)
    place = y if tall else x  # along the slider
    control, number = yield now.click_at(f"Point at {wanted:g} on it.", x, y, main=True)
    held = number or 0.0
    slope = (-control.box.height if tall else control.box.width) / span  # pixels a unit, as far as it is known
    for _ in range(1, _MOST_POINTED):
        if not _far(control, held, wanted, span):
            break
        x, y = _spot(control, wanted, least, span)
        before, old = place, held
        if held == first:  # a click did not move it: drag it
            here, there = now.point(*_spot(control, held, least, span)), now.point(x, y)
            text, place = f"Drag it to {wanted:g}.", y if tall else x
        else:
            # The handle is under the pointer now. Drag it from there, because a click on the handle has no effect.
            place = before + (wanted - held) * slope
            here, there = [now.point(x, at) if tall else now.point(at, y) for at in (before, place)]
            text = f"It holds {held:g}: draw it to {wanted:g}."
        call = {"action": "drag", "start_coordinate": here, "end_coordinate": there}
        control, number = yield Step(text, call, main=True)
        held = number or 0.0
        if abs(held - old) > 1e-9 and place != before:
            slope = (place - before) / (held - old)
    values: list[float] = []  # before each key, since the slider was at an end
    keys, is_from_end = 0, False
    while keys < _MOST_KEYS and not (keys > 1 and now.moves[-1].has("no_effect")):
        key = (("up", "down") if tall else ("right", "left"))[wanted <= held]
        text = f"It holds {held:g}: press {key}."
        values.append(held)
        sides = [value > wanted for value in values if value != wanted]
        if sum(one != other for one, other in itertools.pairwise(sides)) > 1:  # the number lies between two steps
            if goal.value is None:
                yield Done(f"{words} holds {held:g}")
                return
            end = None if is_from_end else _end_in_steps_of(control, values, wanted, _MOST_KEYS - keys - 1)
            if end is None:
                yield Stuck(f"{words} goes in steps past {wanted:g}: it holds {held:g}.")
                return
            key, is_from_end, values = end, True, []
            text = f"From its end it goes to {wanted:g} in whole steps: press {end}."
        control, number = yield press(text, key)
        held, keys = number or 0.0, keys + 1
    yield Stuck(f"{words} holds {held:g}, and I could not bring it to {wanted:g}.")


def _end_in_steps_of(control: Element, values: list[float], wanted: float, most: int) -> str | None:
    """Return the key that moves the control to an end near the number: in fewer than `most` whole steps, or None."""
    steps = [abs(one - other) for one, other in itertools.pairwise(values) if one != other]
    for end, key in zip(control.limits or (), _ENDS, strict=False):
        count = abs(wanted - end) / min(steps) if steps else most
        if count < most and math.isclose(count, round(count), abs_tol=1e-3):
            return key
    return None


def _is_tall(control: Element) -> bool:
    return control.box.height > 1.5 * control.box.width


def _far(control: Element, held: float, wanted: float, span: float) -> bool:
    """Return whether the value is off by more than two pixels, so that pointing is better than keys."""
    return abs(held - wanted) / span > 2 / max(control.box.width, control.box.height, 1)


def _spot(control: Element, value: float, least: float, span: float) -> tuple[float, float]:
    """Return the position of a slider's handle for a number."""
    box = control.box
    share = min(1.0, max(0.0, (value - least) / span))
    if _is_tall(control):
        inset = min(box.width, 20) * _HANDLE
        return box.left + box.width / 2, box.bottom - inset - share * (box.height - 2 * inset)
    inset = min(box.height, 20) * _HANDLE
    return box.left + inset + share * (box.width - 2 * inset), box.top + box.height / 2
