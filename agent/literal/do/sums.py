"""Calculates in the desktop's calculator: enters an expression and checks the display."""

import re
from fractions import Fraction

from agent.literal.do.now import Done, Now, Pursuit, Stuck, opened, press, start, until
from agent.literal.find.scene import FIELDS, TEXTS, Scene
from agent.literal.goals import Calculate
from agent.literal.vocabulary.numbers import value_of
from agent.screen.outline import Element

#: Application names of calculators.
_CALCULATORS = re.compile(r"calc|galculator", re.IGNORECASE)
#: Most characters entered: a key each.
_MOST_SIGNS = 28
_MOST_WAITS = 3
#: A number as a calculator shows it.
NUMBER = re.compile(r"[-−]?\d[\d.,'’\s]*(?:[eE][-+]?\d+)?")


def calculate(now: Now, goal: Calculate) -> Pursuit:
    """Enter an expression and read the result."""
    signs = re.sub(r"\s", "", goal.expression)
    result = value_of(signs)
    if result is None or len(signs) > _MOST_SIGNS:
        return Stuck(f"I cannot calculate “{goal.expression[:60]}”: I know numbers, + - * / ^ and brackets.")
    if not _is_in_front(now):
        name = goal.calculator or "calculator"
        stuck = yield from opened(start(f"Open the {name}.", name), lambda: _is_in_front(now), name)
        if stuck is not None:
            return stuck
    cleared = yield press("Clear the calculator.", "escape")
    for sign in signs:  # the keypad's decimal key enters the separator of the desktop's language
        yield press(f"Enter {sign}.", "kp_decimal" if sign == "." else sign)
    yield press("Calculate it.", "enter", main=True)
    old = {(one.box, shown) for one, shown in shown_texts(cleared.scene)}
    scenes = [move.scene for move in now.moves[now.begun :]]
    reacted = {one.box for scene in scenes for one, shown in shown_texts(scene) if (one.box, shown) not in old}

    def read() -> Done | None:
        for element, shown in shown_texts(now.scene):
            numbers = NUMBER.findall(shown)
            if (
                (element.box in reacted or (element.box, shown) not in old)
                and numbers
                and is_number(numbers[-1], result)
            ):
                number = numbers[-1].strip(" .,")
                return Done(f"{goal.expression} is {number}: the calculator shows “{' '.join(shown.split())[:60]}”")
        return None

    done = yield from until(read, "The result is not to be seen yet: wait.", _MOST_WAITS, 0.7)
    shows = "; ".join(dict.fromkeys(" ".join(shown.split())[:40] for _, shown in shown_texts(now.scene)[:3]))
    return done or Stuck(
        f"I entered {goal.expression}, but the calculator does not show the result. It shows: {shows}."
    )


def _is_in_front(now: Now) -> bool:
    front = now.scene.front
    return front is not None and _CALCULATORS.search(front.app) is not None


def shown_texts(scene: Scene) -> list[tuple[Element, str]]:
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
    """Return whether a number in any language's notation is the result, to the digits shown."""
    return any(_equal(number, result) for number in _readings(shown))


def _readings(shown: str) -> set[str]:
    """Return the number with a decimal point, for each reading of "." and ","."""
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
    # A whole number must be exact. Decimals may be rounded or truncated by the display.
    step = Fraction(0) if places == 0 and not power else Fraction(10) ** (int(power or 0) - places)
    return abs(value - result) <= step
