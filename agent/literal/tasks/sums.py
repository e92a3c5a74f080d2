"""Sums: entered in the desktop's calculator, whose display is read and checked."""

import ast
import operator
import re
from collections.abc import Callable
from fractions import Fraction

from agent.literal.find.scene import FIELDS, TEXTS, Scene
from agent.literal.goals import Calculate
from agent.literal.state.goal_state import Done, GoalState, Step, Stuck, Verdict, press
from agent.literal.tasks.stages import last_stage, stage_of, wait_or
from agent.screen.outline import Element

#: The applications that are calculators, as their windows tell it.
_CALCULATORS = re.compile(r"calc|galculator", re.IGNORECASE)
#: Signs entered at most, a key each, and digits of a number, so that no sum takes long.
_MOST_SIGNS, _MOST_DIGITS, _LARGEST_POWER = 28, 40, 200
_NUMBER = re.compile(r"[-−]?\d[\d.,'’\s]*(?:[eE][-+]?\d+)?")
_OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def calculate(now: GoalState, goal: Calculate) -> Verdict:
    """The next step of a sum."""
    signs = re.sub(r"\s", "", goal.expression)
    result = value_of(signs)
    if result is None or len(signs) > _MOST_SIGNS:
        return Stuck(f"I cannot calculate “{goal.expression[:60]}”: I know numbers, + - * / ^ and brackets.")
    stage = stage_of(now)
    entered = [move for move in now.moves if move.about == "sign"]
    if stage == "equals":
        return _read(now, goal, result)
    if not entered and stage != "cleared":
        way = _to_calculator(now, goal)
        return way or press("Clear the calculator.", "prepare", "escape", "cleared")
    if len(entered) < len(signs):
        sign = signs[len(entered)]
        return press(f"Enter {sign}.", "keys", _KEYS.get(sign, sign), "sign")
    return press("Calculate it.", "act", "enter", "equals")


#: Keys of signs: the number pad's decimal key enters what the desktop's language has for it.
_KEYS = {".": "kp_decimal"}


def _to_calculator(now: GoalState, goal: Calculate) -> Verdict | None:
    front = now.scene.front
    if front is not None and _CALCULATORS.search(front.app):
        return None
    name = goal.calculator or "calculator"
    opened = last_stage(now)
    if opened is None:
        return Step(f"Open the {name}.", "place", {"action": "open", "text": name}, "calculator")
    if opened.has("failed"):
        reason = next((note.detail for note in opened.notes if note.kind == "failed"), "")
        return Stuck(f"I could not open “{name}”: {reason}.")
    return wait_or(now, "The calculator", Stuck(f"I opened “{name}”, but no calculator came to the front."), 1)


def _read(now: GoalState, goal: Calculate, result: Fraction) -> Verdict:
    """The result that the display shows, where it did not before."""
    acted = now.acted
    before = Scene(acted.screen.outline) if acted and acted.screen and acted.screen.outline else None
    old = set() if before is None else {(one.box, shown) for one, shown in _shown(before)}
    for element, shown in _shown(now.scene):
        if (element.box, shown) not in old and any(_is(number, result) for number in _NUMBER.findall(shown)[-1:]):
            number = _NUMBER.findall(shown)[-1].strip(" .,")
            return Done(f"{goal.expression} is {number}: the calculator shows “{' '.join(shown.split())[:60]}”")
    shows = "; ".join(dict.fromkeys(" ".join(shown.split())[:40] for _, shown in _shown(now.scene)[:3]))
    stuck = Stuck(f"I entered {goal.expression}, but the calculator does not show the result. It shows: {shows}.")
    return wait_or(now, "The result", stuck)


def _shown(scene: Scene) -> list[tuple[Element, str]]:
    """What stands in the window in front, but for what is written on its buttons.

    KCalc's display is in no tree: it can only be read.
    """
    return [
        (element, text)
        for element in scene.elements
        if element.role in TEXTS | FIELDS and scene.in_front(element)
        for text in (element.value or "", element.name)
        if text
    ]


def _is(shown: str, result: Fraction) -> bool:
    """Whether a number as any language writes it is the result, as exactly as it is shown."""
    return any(_equal(number, result) for number in _readings(shown))


def _readings(shown: str) -> set[str]:
    """A number with a decimal point, for each way of reading its marks."""
    bare = re.sub(r"[\s'’]", "", shown.replace("−", "-")).strip(".,")
    readings = set()
    for point, thousands in (".,", ",."):
        grouped = rf"-?(\d+|\d{{1,3}}({re.escape(thousands)}\d{{3}})+)({re.escape(point)}\d+)?([eE][-+]?\d{{1,3}})?"
        if re.fullmatch(grouped, bare):
            readings.add(bare.replace(thousands, "").replace(point, "."))
    return readings


def _equal(number: str, result: Fraction) -> bool:
    value = Fraction(number)
    digits, _, power = number.lower().partition("e")
    places = len(digits.partition(".")[2])
    # A whole number must be exact; digits after the point, of which there are too many, are rounded or cut.
    step = Fraction(0) if places == 0 and not power else Fraction(10) ** (int(power or 0) - places)
    return abs(value - result) <= step


def value_of(expression: str) -> Fraction | None:
    """What an expression of numbers, + - * / ^ and brackets comes to, exactly; None where it is none such."""
    if re.fullmatch(r"[-+*/^().\d]{1,200}", expression) is None or re.search(rf"\d{{{_MOST_DIGITS}}}", expression):
        return None
    try:
        written = re.sub(r"(?<![\d.])0+(?=\d)", "", expression)
        return _value(ast.parse(written.replace("^", "**"), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, OverflowError, RecursionError):
        return None


def _value(node: ast.expr) -> Fraction:
    match node:
        case ast.Constant(int() | float()):
            return Fraction(ast.unparse(node))
        case ast.UnaryOp(ast.USub(), operand):
            return -_value(operand)
        case ast.BinOp(left, ast.Pow(), right):
            base, power = _value(left), _value(right)
            if power.denominator != 1 or abs(power) > _LARGEST_POWER or abs(base) > 10**6:
                raise ValueError("the power is too large")
            return base ** int(power)
        case ast.BinOp(left, sign, right) if type(sign) in _OPERATORS:
            return _OPERATORS[type(sign)](_value(left), _value(right))
    raise ValueError("no expression of numbers")
