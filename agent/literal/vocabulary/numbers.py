"""Parses numbers as people write them (digits or words, with a unit), and expressions to calculate."""

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

from agent.literal.vocabulary.lexicon import either

_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_WORDS: Mapping[str, float] = {word: at for at, word in enumerate(_SMALL)} | {
    word: 20 + 10 * at
    for at, word in enumerate(("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"))
}
_TENS = either(word for word, value in _WORDS.items() if value >= 20)
_ONES = either(word for word, value in _WORDS.items() if value < 20)
_BELOW_HUNDRED = rf"(?:{_TENS}(?:[ -]{_ONES})?|{_ONES})"
_BELOW_THOUSAND = rf"(?:(?:{_ONES}|{_TENS}|a|one) hundred(?: (?:and )?{_BELOW_HUNDRED})?|{_BELOW_HUNDRED})"
_IN_WORDS = rf"(?:(?:{_BELOW_THOUSAND}|a) thousand(?: (?:and )?{_BELOW_THOUSAND})?|{_BELOW_THOUSAND})"
#: Digits in groups of three, as English writes thousands: "1,250", but not "0,125".
_GROUPED = r"[1-9]\d{0,2}(?:,\d{3})+(?!\d|,\d)"
_DIGITS = rf"[+-]?(?:{_GROUPED}(?:\.\d{{1,10}})?|\d{{1,15}}(?:[.,]\d{{1,10}})?)"
#: A regular expression for a number.
NUMBER = rf"(?:{_DIGITS}|{_IN_WORDS})(?![\w])"
#: Words after a number that make it larger.
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_NUMBER = re.compile(
    rf"(?i)(?P<number>{_DIGITS}|{_IN_WORDS})(?:\s?(?P<scale>{either(_SCALES)}))?(?P<unit>\s?%|\s?[a-zA-Zµ°]{{1,14}})?"
)
#: Seconds of the units of time.
_TIMES = {"ms": 0.001, "msec": 0.001, "millisecond": 0.001, "s": 1, "sec": 1, "second": 1, "m": 60, "min": 60,
          "minute": 60, "h": 3600, "hr": 3600, "hour": 3600}  # fmt: skip
_OTHER_UNITS = {"pixel": "px", "point": "pt", "kelvin": "k", "degree": "°"}
_ENDS = {
    "maximum": 100, "the maximum": 100, "max": 100, "full": 100, "the max": 100, "full volume": 100, "its maximum": 100,
    "minimum": 0, "the minimum": 0, "min": 0, "the min": 0, "its minimum": 0, "half": 50, "a half": 50,
}  # fmt: skip
_MINUTES = {
    "half an hour": 30, "a half hour": 30, "a quarter of an hour": 15, "quarter of an hour": 15, "an hour": 60,
    "an hour and a half": 90, "a minute": 1,
}  # fmt: skip

_OPERATORS = {
    "times": "*", "multiplied by": "*", "x": "*", "×": "*", "·": "*", "*": "*",
    "divided by": "/", "over": "/", "÷": "/", ":": "/", "/": "/",
    "plus": "+", "and": "+", "+": "+", "minus": "-", "less": "-", "−": "-", "–": "-", "-": "-",
    "to the power of": "^", "^": "^", "**": "^",
}  # fmt: skip
#: Sums in words, and what they are in signs.
_SPOKEN = {
    r"(?:(?:the )?sum of|add|sum(?: up)?) (.+?) (?:and|to) (.+)": r"\1 + \2",
    r"(?:(?:the )?product of|multiply) (.+?) (?:and|by|with) (.+)": r"\1 * \2",
    r"(?:(?:the )?quotient of|divide) (.+?) (?:and|by) (.+)": r"\1 / \2",
    r"(?:the )?difference (?:of|between) (.+?) and (.+)": r"\1 - \2",
    r"subtract (.+?) from (.+)": r"\2 - \1",
    r"(?:a |one )?half of (.+)": r"\1 / 2",
    r"(?:a|one) third of (.+)": r"\1 / 3",
    r"(?:a|one) quarter of (.+)": r"\1 / 4",
    r"(?:twice|double) (.+)": r"\1 * 2",
}
#: Replacements of number words, percent signs and operators of a sum by signs, in their order.
_IN_SIGNS: Sequence[tuple[str, Callable[[re.Match[str]], str]]] = (
    (rf"\b{_IN_WORDS}\b", lambda found: f" {number_of(found[0]) or 0:.15g} "),
    (r"(?:%|percent\b) ?(of )?", lambda found: "/100*" if found[1] else "/100"),
    (
        rf"\b{either(word for word in _OPERATORS if word[0].isalpha())}\b|\*\*|[-+*/×·÷:^−–]",
        lambda found: _OPERATORS[found[0].casefold()],
    ),
    (rf"(?<![\d.,]){_GROUPED}", lambda found: found[0].replace(",", "")),
    (r"(?<=\d),(?=\d)", lambda _: "."),
)


def number_of(text: str) -> float | None:
    """Parse a number in digits or words; None for anything else."""
    text = " ".join(text.split()).casefold()
    if re.fullmatch(_DIGITS, text):
        grouped = re.match(rf"[+-]?{_GROUPED}", text)
        return float(text.replace(",", "" if grouped else "."))
    return _in_words(text) if re.fullmatch(_IN_WORDS, text) else None


def amount_of(text: str) -> tuple[float, str] | None:
    """Parse a number and its unit ("50 %", "ten minutes", "12pt", "maximum"); None for anything else."""
    text = " ".join(text.split()).casefold()
    if text in _ENDS:
        return float(_ENDS[text]), "%"
    if text in _MINUTES:
        return float(_MINUTES[text]), "minutes"
    text = re.sub(r"\s?(?:percent|per cent|procent)$", "%", text)
    positive = re.sub(r"^(?:minus|negative) ", "", text)
    match = _NUMBER.fullmatch(positive)
    value = number_of(match["number"]) if match else None
    if match is None or value is None:
        return None
    value *= _SCALES.get(match["scale"] or "", 1) * (1 if positive == text else -1)
    return value, (match["unit"] or "").strip()


def converted(amount: float, unit: str, words: Iterable[str]) -> float | None:
    """Return an amount in the unit that is among the words of a control; None if none of them is a unit of its kind."""
    wanted = _unit(unit)
    units = [_unit(word) for word in words]
    if wanted in units:
        return amount
    # The last one is in brackets or behind the number: "Min. delay (ms)".
    time = next((one for one in reversed(units) if one in _TIMES), None) if wanted in _TIMES else None
    return None if time is None else amount * _TIMES[wanted] / _TIMES[time]


def is_unit(word: str) -> bool:
    """Return whether a word is a unit that settings have, or is empty."""
    return _unit(word) in {"", "%", *_TIMES, *_OTHER_UNITS, *_OTHER_UNITS.values()}


def _unit(word: str) -> str:
    word = word.casefold()
    single = word if word in _TIMES else word.removesuffix("s")
    return _OTHER_UNITS.get(single, single)


def _in_words(text: str) -> float:
    thousands, value = 0.0, 0.0
    for word in re.split(r"[ -]", text):
        if word == "thousand":
            thousands, value = max(value, 1) * 1000, 0.0
        elif word == "hundred":
            value = max(value, 1) * 100
        elif word == "a":
            value = 1
        elif word != "and":
            value += _WORDS[word]
    return thousands + value


def expression_of(text: str) -> str | None:
    """Translate a calculation into a calculator's notation ("12 times 12": "12*12"); None for anything else."""
    text = re.sub(r"(?<=\d)x(?=\d)", " x ", " ".join(text.split()).strip(" ?.="))
    if _UNCLEAR.search(text):
        return None
    for pattern, written in _SPOKEN.items():
        text = re.sub(f"^{pattern}$", written, text, flags=re.IGNORECASE)
    if re.search(r"(?:[-+]|\b(?:plus|minus)\b) ?[\d.,]+ ?(?:%|percent\b)(?! ?of)", text, re.IGNORECASE):
        return None  # "100 plus 10 percent": of what?
    for pattern, sign in _IN_SIGNS:
        text = re.sub(pattern, sign, text, flags=re.IGNORECASE)
    joined = "".join(text.split())
    numbers_touch = re.search(r"[\d.)]\s+[\d.(]|\)\d", text)
    return joined if not numbers_touch and re.search(r"[\d)][-+*/^]", joined) and value_of(joined) is not None else None


_SIGN = r"(?:plus|minus|times|over|less|divided|multiplied|[-+*/×÷])"
#: Sums that can be read in several ways: clock times, percentages of something, two operations in words.
_UNCLEAR = re.compile(
    rf"(?i)\d:\d\d|\d ?(?:%|percent) (?:plus|minus|to|[-+])|\b(?:half|third|quarter|double|twice|triple)\b.* {_SIGN} "
    rf"|\b(?:multiply|divide|add|subtract|sum|product|quotient|difference)\b.* {_SIGN} "
    rf"|{_SIGN}.* and .*{_SIGN}"
)
#: Limits that keep a calculation short: digits of a number, exponent.
_MOST_DIGITS, _LARGEST_POWER = 40, 200
_ARITHMETIC: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def value_of(expression: str) -> Fraction | None:
    """Return the exact value of an expression of numbers, + - * / ^ and brackets; None for anything else."""
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
        case ast.BinOp(left, sign, right) if type(sign) in _ARITHMETIC:
            return _ARITHMETIC[type(sign)](_value(left), _value(right))
    raise ValueError("no expression of numbers")
