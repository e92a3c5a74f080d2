"""Numbers: spin buttons are typed into, sliders are pointed at and then moved by keys until they hold what was said."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from agent.literal.do.looking import known_place, look_further
from agent.literal.do.toggling import targets_of
from agent.literal.find.finder import PART, WHOLE
from agent.literal.find.scene import AMOUNTS, CHOICES, COMBOS, FIELDS, TEXTS
from agent.literal.goals import Choose, SetValue, Target
from agent.literal.language.wording import describe_target
from agent.literal.state.conversation import Move
from agent.literal.state.goal_state import Done, GoalState, Step, Stuck, Verdict, press, wait
from agent.literal.vocabulary.places import Place
from agent.screen.outline import Element

#: Keys that go to the least and to the most that a slider holds.
_ENDS = ("home", "end")
#: Keys pressed on a slider at most: pointing comes near enough for these.
_MOST_KEYS = 24
_MOST_POINTED = 4
#: A busy window is asked again so often for a control that was there.
_MOST_WAITS = 3
#: Of the whole range, by this much something is made larger or smaller where no number is said.
_SHARE = 0.1
#: A slider's handle does not reach the ends of its box, by about half its height.
_HANDLE = 0.5
#: PulseAudio counts 100 % as this.
_FULL_VOLUME = 65536
#: What a step is about that puts back what was there before: the number, and why.
_BACK = "back to "


def set_value(now: GoalState, goal: SetValue) -> Verdict | Choose:
    """The next step of having something hold a number; on a miss it gets back what it held before."""
    back = [move for move in now.moves if move.about.startswith(_BACK)]
    tried = [move for move in now.moves if not move.about.startswith(_BACK)]
    if back:
        return _put_back(now, goal, back, *back[0].about.removeprefix(_BACK).split("|", 1))
    verdict = _approach(replace(now, moves=tried), goal)
    if isinstance(verdict, Stuck) and (first := _held_at_first(now, goal)) is not None:
        return _put_back(now, goal, (), repr(first), verdict.words)
    return verdict


def _put_back(now: GoalState, goal: SetValue, moves: Sequence[Move], first: str, missed: str) -> Verdict:
    """The next step of giving a control back what it held before it was tried in vain."""
    own = [replace(move, about=first if move.intent != "late" else "") for move in moves]
    verdict = _approach(replace(now, moves=own), SetValue(goal.target, float(first)))
    if isinstance(verdict, Step):
        words = verdict.words if moves else f"{missed} Put back what it held before. {verdict.words}"
        return Step(words, verdict.intent, verdict.arguments, f"{_BACK}{first}|{missed[:240]}")
    if isinstance(verdict, Done):
        return Stuck(f"{missed} I put back what it held before: {float(first):g}.")
    return Stuck(f"{missed} It held {float(first):g} before, and I could not put that back.")


def _held_at_first(now: GoalState, goal: SetValue) -> float | None:
    """What the control held before anything was done to it, where it holds something else now."""
    control = _control(now, goal, known_place(now, goal.target))
    move = next((one for one in now.moves if one.intent in ("act", "keys", "focus", "pick")), None)
    first = None if control is None or move is None else _held_before(move, control)
    return first if control is not None and number_of(control) != first else None


def _approach(now: GoalState, goal: SetValue) -> Verdict | Choose:
    """The next step towards a number."""
    place = known_place(now, goal.target)
    control = _control(now, goal, place)
    if control is None and not now.tried("keys") and (shown := as_choice(now, goal, place)) is not None:
        return shown
    if control is None:
        if now.tried("act"):
            if now.waits < _MOST_WAITS:
                return wait(f"{describe_target(goal.target)} is not told just now: wait and look again.")
            return Stuck(f"{describe_target(goal.target)} is not to be seen any more.")
        return look_further(now, goal.target, place)
    held = number_of(control)
    if held is None and control.role in AMOUNTS:
        return Stuck(f"{describe_target(goal.target)} does not tell what it holds.")
    wanted = _wanted(now, goal, control, held or 0.0)
    if wanted is None:
        return Stuck(f"{describe_target(goal.target)} does not tell what it holds.")
    if control.limits is not None and not control.limits[0] - 1e-9 <= wanted <= control.limits[1] + 1e-9:
        least, most = control.limits
        if goal.value is not None:
            return Stuck(f"{describe_target(goal.target)} takes {least:g} to {most:g}, not {wanted:g}.")
        wanted = min(max(wanted, least), most)
        if held is not None and not now.moves and _equal(held, wanted, goal, control):
            return Stuck(f"{describe_target(goal.target)} is at its limit already: {held:g}.")
    if held is not None and _equal(held, wanted, goal, control):
        return _reached(now, goal, held)
    if "disabled" in control.states:
        return Stuck(f"{describe_target(goal.target)} cannot be set now: it is greyed out.")
    if control.role in ("slider", "dial"):
        return _slide(now, goal, control, held or 0.0, wanted)
    return _enter(now, goal, control, held, wanted)


def as_choice(now: GoalState, goal: SetValue, place: Place | None) -> Choose | None:
    """The number as one of the choices of a combo box, where that is what is called so."""
    if goal.value is None or goal.direction:
        return None
    combo = next((one for one in targets_of(goal.target, place) if now.finder.best(one, COMBOS) is not None), None)
    if combo is None and not any(move.about == goal.target.name for move in now.tried("focus")):
        return None
    number = f"{goal.value:g}"
    ways = [f"{number}{goal.unit}", f"{number} {goal.unit}".strip(), *(("Full", "Maximum") if goal.unit == "%" else ())]
    there = next((way for way in ways if now.finder.all(Target(way), CHOICES | TEXTS)), ways[0])
    return Choose(there, goal.target)


def number_of(element: Element) -> float | None:
    """The number that a control holds; None where it does not tell."""
    for text in (element.value, element.name if element.role in FIELDS else None):
        if text is None:
            continue
        digits = text.strip().replace("\u2212", "-").rstrip("%°KkxpPXts \u00a0")
        try:
            return float(digits.replace(",", "."))
        except ValueError:
            continue
    return None


def _control(now: GoalState, goal: SetValue, place: Place | None) -> Element | None:
    for least in (WHOLE, PART):
        for target in targets_of(goal.target, place):
            for roles in (AMOUNTS, FIELDS - {"document text", "terminal"}):
                if (found := now.finder.best(target, roles, least=least)) is not None:
                    return found.element
    # A slider and a number may stand under one heading.
    for target in targets_of(goal.target, place):
        if not target.name:
            continue
        held = now.finder.all(Target(role="slider", under=target.name, inside=target.inside), AMOUNTS)
        if held and held[0].element.role in AMOUNTS:
            return held[0].element
    return None


def _wanted(now: GoalState, goal: SetValue, control: Element, held: float) -> float | None:
    """The number to reach; what is relative is counted from what was held at first, and remembered."""
    for move in now.moves:
        if move.about and move.intent in ("act", "focus", "pick", "keys"):
            try:
                return float(move.about)
            except ValueError:
                continue
    amount = goal.value
    if amount is not None and goal.unit == "%" and control.limits is not None:
        amount = _percent(amount, control.limits)
    if not goal.direction:
        return amount
    if amount is None:
        if control.limits is None:
            amount = 1.0
        else:
            amount = _SHARE * (control.limits[1] - control.limits[0])
            amount = max(1.0, round(amount)) if control.role == "spin button" else amount
    return held + amount if goal.direction == "up" else held - amount


def _percent(amount: float, limits: tuple[float, float]) -> float:
    least, most = limits
    if most >= _FULL_VOLUME:
        return amount * _FULL_VOLUME / 100
    if least >= 0 and 100 <= most <= 500 and least < 100:
        return amount
    return least + (most - least) * amount / 100


def _equal(held: float, wanted: float, goal: SetValue, control: Element) -> bool:
    """Whether a control holds what is wanted: less than half of the last digit that was said away from it."""
    span = 0.0 if control.limits is None else control.limits[1] - control.limits[0]
    if control.role not in ("slider", "dial"):
        return math.isclose(held, wanted, abs_tol=1e-6)
    if goal.value is None:
        return abs(held - wanted) < 0.25 * _SHARE * span
    decimals = len(f"{goal.value:g}".partition(".")[2])
    digit = span / 100 if goal.unit == "%" else min(10.0**-decimals, span / 100)
    return abs(held - wanted) < max(0.5 * digit, 1e-6 * span)


def _reached(now: GoalState, goal: SetValue, held: float) -> Verdict:
    words = f"{describe_target(goal.target)} holds {held:g}"
    if not now.tried("act", "keys", "focus"):
        return Done(f"{words} already")
    first = next(move for move in now.moves if move.intent in ("act", "keys", "focus"))
    return Done("; ".join((words, *now.effects_of(first).changes[:2])))


def _enter(now: GoalState, goal: SetValue, control: Element, held: float | None, wanted: float) -> Verdict:
    """Type the number into its field, and leave the field so that it counts."""
    if not now.tried("focus"):
        box = control.box
        x, y = box.left + min(box.width * 0.3, 24), box.top + box.height / 2
        step = now.click_at(f"Focus {describe_target(goal.target)}: click it.", "focus", x, y)
        return _about(step, wanted)
    if not now.tried("pick"):
        return _about(press("Select the number that stands there.", "pick", "ctrl+a"), wanted)
    if len(now.tried("pick")) == 1:
        return _about(press("Remove it.", "pick", "backspace"), wanted)
    if not now.tried("act"):
        return _about(Step(f"Type {wanted:g}.", "act", {"action": "type", "text": f"{wanted:g}"}), wanted)
    if not now.tried("keys"):
        return _about(press("Leave the field.", "keys", "tab"), wanted)
    if now.waits < 1:
        return wait("The number may be taken late: wait.")
    holds = "nothing that I can read" if held is None else f"{held:g}"
    return Stuck(f"I typed {wanted:g}, but {describe_target(goal.target)} holds {holds}.")


def _slide(now: GoalState, goal: SetValue, control: Element, held: float, wanted: float) -> Verdict:
    """Point at where the number is, then move by keys."""
    least, most = control.limits or (0.0, 100.0)
    span = most - least or 1.0
    pointed, keys = now.tried("act"), now.tried("keys")
    if not keys and len(pointed) < _MOST_POINTED and (not pointed or _far(control, held, wanted, span)):
        return _about(_point(now, control, held, wanted, least, span), wanted)
    if _passed_over(now, control, held, wanted):
        if goal.value is None:
            return _reached(now, goal, held)
        if (end := _end_in_steps_of(now, control, held, wanted)) is not None:
            return _about(
                press(f"From its end it goes to {wanted:g} in whole steps: press {end}.", "keys", end), wanted
            )
        return Stuck(f"{describe_target(goal.target)} goes in steps past {wanted:g}: it holds {held:g}.")
    if len(keys) >= _MOST_KEYS or (keys and keys[-1] is now.latest and keys[-1].has("no_effect") and len(keys) > 1):
        return Stuck(f"{describe_target(goal.target)} holds {held:g}, and I could not bring it to {wanted:g}.")
    key = "right" if wanted > held else "left"
    if control.box.height > 1.5 * control.box.width:
        key = "up" if wanted > held else "down"
    return _about(press(f"It holds {held:g}: press {key}.", "keys", key), wanted)


def _end_in_steps_of(now: GoalState, control: Element, held: float, wanted: float) -> str | None:
    """The key for the end of a slider from which keys come to a number exactly; None for neither, or tried before."""
    keys = now.tried("keys")
    if control.limits is None or any(move.call.get("keys") in _ENDS for move in keys):
        return None
    values = [value for move in keys if (value := _held_before(move, control)) is not None] + [held]
    steps = [abs(one - other) for one, other in itertools.pairwise(values) if one != other]
    if not steps:
        return None
    step = min(steps)
    for end, key in zip(control.limits, _ENDS, strict=True):
        count = abs(wanted - end) / step
        if count < _MOST_KEYS - len(keys) - 1 and math.isclose(count, round(count), abs_tol=1e-3):
            return key
    return None


def _since_an_end(keys: Sequence[Move]) -> Sequence[Move]:
    """The keys after the one that went to an end of a slider."""
    ends = [at for at, move in enumerate(keys) if move.call.get("keys") in _ENDS]
    return keys[ends[-1] + 1 :] if ends else keys


def _far(control: Element, held: float, wanted: float, span: float) -> bool:
    """Whether pointing once more brings it nearer than keys do."""
    return abs(held - wanted) / span > 2 / max(control.box.width, control.box.height, 1)


def _point(now: GoalState, control: Element, held: float, wanted: float, least: float, span: float) -> Step:
    """Point at where the number must be, by what pointing gave before: how a slider maps its length is not told."""
    tall = control.box.height > 1.5 * control.box.width
    known = _known_places(now, control, held, tall=tall)
    x, y = _spot(control, wanted, least, span)
    if known and known[-1][1] == _before_all(now, control):  # it does not go where one clicks: drag it
        ends = now.point(*_spot(control, held, least, span)), now.point(x, y)
        call = {"action": "drag", "start_coordinate": ends[0], "end_coordinate": ends[1]}
        return Step(f"Drag it to {wanted:g}.", "act", call)
    if known:
        # The handle stands under the pointer now: it is drawn from there, because a click on it moves nothing.
        length = -control.box.height if tall else control.box.width
        place, along = known[-1][0], _next_place(known, wanted, length / span)
        here, there = [now.point(x, at) if tall else now.point(at, y) for at in (place, along)]
        call = {"action": "drag", "start_coordinate": here, "end_coordinate": there}
        return Step(f"It holds {held:g}: draw it to {wanted:g}.", "act", call)
    return now.click_at(f"Point at {wanted:g} on it.", "act", x, y)


def _known_places(now: GoalState, control: Element, held: float, *, tall: bool) -> list[tuple[float, float]]:
    """Where was pointed at, along the slider, and what it held then."""
    moves = list(now.moves)
    known = []
    for at, move in enumerate(moves):
        point = move.call.get("end_coordinate") or move.call.get("coordinate")
        if move.intent != "act" or not isinstance(point, list):
            continue
        value = held if at == len(moves) - 1 else _held_before(moves[at + 1], control)
        if value is not None:
            size = now.scene.outline.size
            scale = size.height / now.image.height if tall else size.width / now.image.width
            known.append((point[1 if tall else 0] * scale, value))
    return known


def _before_all(now: GoalState, control: Element) -> float | None:
    first = next((move for move in now.moves if move.intent == "act"), None)
    return None if first is None else _held_before(first, control)


def _next_place(known: list[tuple[float, float]], wanted: float, slope: float) -> float:
    """The place for a number on the line through the last two; through one, `slope` pixels a unit steep."""
    (place, value) = known[-1]
    if len(known) > 1 and abs(known[-2][1] - value) > 1e-9:
        slope = (place - known[-2][0]) / (value - known[-2][1])
    return place + (wanted - value) * slope


def _passed_over(now: GoalState, control: Element, held: float, wanted: float) -> bool:
    """Whether keys went past what is wanted, and past it again: no step comes to it."""
    keys = _since_an_end(now.tried("keys"))
    values = [value for move in keys if (value := _held_before(move, control)) is not None] + [held]
    sides = [value > wanted for value in values if value != wanted]
    return sum(one != other for one, other in itertools.pairwise(sides)) > 1


def _held_before(move: Move, control: Element) -> float | None:
    """What the control held before a move."""
    outline = None if move.screen is None else move.screen.outline
    same = [one for one in outline.elements if one.role == control.role] if outline else []
    then = [one for one in same if one.box == control.box]
    then = then or [one for one in same if (one.name, one.label) == (control.name, control.label) != ("", "")]
    return number_of(then[0]) if len(then) == 1 else None


def _spot(control: Element, value: float, least: float, span: float) -> tuple[float, float]:
    """Where a slider's handle stands for a number."""
    box = control.box
    share = min(1.0, max(0.0, (value - least) / span))
    if box.height > 1.5 * box.width:
        inset = min(box.width, 20) * _HANDLE
        return box.left + box.width / 2, box.top + box.height - inset - share * (box.height - 2 * inset)
    inset = min(box.height, 20) * _HANDLE
    return box.left + inset + share * (box.width - 2 * inset), box.top + box.height / 2


def _about(step: Step, wanted: float) -> Step:
    """The step, with the number to reach in its memory."""
    return Step(step.words, step.intent, step.arguments, repr(wanted))
