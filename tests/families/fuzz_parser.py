"""Feeds hostile answers to the parser; run by hand: python tests/families/fuzz_parser.py COUNT [SEED].

Each case must raise nothing, give JSON that can be written, and put every point strictly inside the screen; every
tenth case also cuts a valid answer somewhere, which must give the same action or none.
"""

import json
import random
import sys
import time
import traceback
from collections import Counter
from typing import Any

from agent.core.actions import map_points, points_of, to_json
from agent.core.geometry import Size, Viewport
from agent.families.base import Decision, ParseFailure
from agent.families.registry import get_family
from foundation.chat_stream import Answer

FAMILY = get_family("mai-ui")
ACTIONS = (
    *(
        "click",
        "left_click",
        "double_click",
        "long_press",
        "drag",
        "swipe",
        "scroll",
        "type",
        "key",
        "hold_key",
        "open",
    ),
    *("wait", "terminate", "answer", "ask_user", "system_button", "move", "AWAKE", "fly", "", "Click"),
)
FIELDS = (
    *("coordinate", "start_coordinate", "end_coordinate", "coordinate2", "point", "direction", "text", "status"),
    *("button", "keys", "key", "seconds", "time", "amount", "action", "name", "arguments", "parameters", "function"),
)
NAME = '"mobile_use"'
WORDS = ("up", "down", "success", "fail", "back", "home", "ctrl+s", "ctrl++", "a", "é", "你好", "\ud800", "😀", "", " ")
NUMBERS = (
    *(
        "0",
        "1",
        "5",
        "500",
        "998",
        "999",
        "1000",
        "1010",
        "1020",
        "-1",
        "-20",
        "0.5",
        "1.0",
        "0.0",
        "-0.0",
        "1e2",
        "1E400",
    ),
    *(
        "NaN",
        "Infinity",
        "-Infinity",
        "9" * 400,
        "1e308",
        "-1e308",
        "0x10",
        "٥",
        "５",
        "1_0",
        "007",
        "1.",
        ".5",
        "1e-400",
    ),
)
TRAPS = (
    *(
        "<tool_call>",
        "</tool_call>",
        "<thinking>",
        "</thinking>",
        "</think>",
        "<answer>",
        "</answer>",
        "</grounding_think>",
    ),
    *(
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        '"',
        "'",
        "\\",
        "\n",
        "\x00",
        "“",
        "”",
        "：",
        "，",
        "｛",
        "｝",
        "［",
        "］",
        ",",
        ":",
        "#",
    ),
    *("<", ">", "/", "\\u", "\\ud800", "\ud83d", "\ude00", "```json", "None", "True", "lambda: 0", "\u202e", "\ufeff"),
    *(
        '{"action":"click","coordinate":[1,2]}',
        '"coordinate":[3,4]',
        "[5,6]",
        "(7，8)",
        "__import__('os')",
        "\r",
        "\u2028",
    ),
)


def value(dice: random.Random, depth: int = 0) -> str:
    """Something where JSON has a value, often not JSON."""
    kind = dice.randrange(12 if depth < 3 else 8)
    if kind < 3:
        return dice.choice(NUMBERS)
    if kind == 3:
        return str(dice.randint(0, 999))
    if kind < 6:
        return json.dumps(dice.choice(WORDS), ensure_ascii=dice.random() < 0.5)
    if kind == 6:
        return dice.choice(("null", "true", "false", "None", "True", "'x'", "“x”", "", '"', '"500, 300"', "[[[["))
    if kind == 7:
        return json.dumps("".join(dice.choices(TRAPS, k=dice.randint(0, 4))), ensure_ascii=dice.random() < 0.5)
    if kind < 11:
        return "[" + ",".join(value(dice, depth + 1) for _ in range(dice.choice((0, 1, 2, 2, 2, 3, 4, 4, 5)))) + "]"
    pairs = (
        f"{json.dumps(dice.choice((*FIELDS, 'x', 'y', 'x1')))}:{value(dice, depth + 1)}"
        for _ in range(dice.randrange(4))
    )
    return "{" + ",".join(pairs) + "}"


def point(dice: random.Random) -> str:
    """A coordinate: mostly a right one, else off the screen, or anything."""
    kind = dice.random()
    if kind < 0.2:
        return value(dice)
    low, high = (0, 999) if kind < 0.8 else (-30, 1100)
    return json.dumps([dice.randint(low, high) for _ in range(dice.choice((2, 2, 4)))])


def valid(dice: random.Random) -> str:
    """An answer in the published form, whose thought may talk about calls."""
    written: dict[str, Any] = {"action": dice.choice(("click", "drag", "type", "swipe", "wait"))}
    if written["action"] == "click":
        written["coordinate"] = [dice.randint(0, 999) for _ in range(dice.choice((2, 4)))]
    elif written["action"] == "drag":
        written |= {name: [dice.randint(0, 999), dice.randint(0, 999)] for name in FIELDS[1:3]}
    elif written["action"] == "type":
        written["text"] = "t" + "".join(dice.choices(TRAPS, k=dice.randint(0, 6)))
    elif written["action"] == "swipe":
        written["direction"] = "up"
    talk = "".join(trap for trap in dice.choices(TRAPS, k=dice.randint(0, 6)) if "think" not in trap)
    body = json.dumps({"name": "mobile_use", "arguments": written}, ensure_ascii=dice.random() < 0.5)
    return f"<thinking>\n{talk}\n</thinking>\n<tool_call>\n{body}\n</tool_call>"


def hostile(dice: random.Random) -> str:
    """An answer with something wrong in it."""
    kind = dice.randrange(16)
    if kind == 0:
        return "".join(dice.choices((*TRAPS, *NUMBERS, *WORDS), k=dice.randint(0, 30)))
    if kind == 1:
        return "".join(
            chr(dice.randrange(0x110000 if dice.random() < 0.1 else 0x250)) for _ in range(dice.randint(0, 60))
        )
    if kind == 2:
        return dice.choice(TRAPS) * dice.randint(1, 3000)
    if kind == 3:
        deep = dice.choice(("[", '{"a":', "{'a':", "(", "-", "{'a':-", "[["))
        return f'<tool_call>{{"name":"t","arguments":{deep * dice.randint(1, 3000)}{dice.choice(("", "1"))}</tool_call>'
    fields = [f'"action":{json.dumps(dice.choice(ACTIONS))}']
    fields += [f'"{name}":{point(dice)}' for name in dice.sample(FIELDS[:5], dice.randint(0, 2))]
    fields += [f'"{name}":{value(dice)}' for name in dice.sample(FIELDS, dice.choice((0, 0, 1, 2)))]
    body = f'{{"name":{NAME if dice.random() < 0.9 else value(dice)},"arguments":{{{",".join(fields)}}}}}'
    opening, closing = dice.choice(
        (("<tool_call>", "</tool_call>"), ("<tool_call>\n", ""), ("", ""), ("<answer>", "</answer>"))
    )
    text = f"{dice.choice(('<thinking>x</thinking>', 'x</think>', '', '<thinking>', 'x'))}{opening}{body}{closing}"
    if kind < 11:
        return text
    for _ in range(dice.randint(1, 5)):
        at = dice.randint(0, len(text))
        text = text[:at] + dice.choice((*TRAPS, *NUMBERS, "")) + text[at + dice.randrange(8) :]
    return text


def check(result: Decision | ParseFailure, screen: Size) -> object:
    """What must hold for any result; the action, or None."""
    if isinstance(result, ParseFailure):
        assert result.message and isinstance(result.kind, str)
        json.dumps([result.message, result.thought], ensure_ascii=False).encode()
        return None
    assert isinstance(result, Decision)
    mapped = map_points(result.actions[0], Viewport.of_image(screen).to_desktop)
    json.dumps(
        [to_json(result.actions[0]), to_json(mapped), result.calls[0].arguments, result.thought], allow_nan=False
    )
    json.dumps([to_json(mapped), result.thought], ensure_ascii=False, allow_nan=False).encode()
    for where in points_of(mapped):
        assert 0 < where.x < screen.width - 1 and 0 < where.y < screen.height - 1, "off the screen"
    return result.actions[0]


def main(count: int, seed: int) -> int:
    """Run the cases; prints what came out, and every case that fails. Returns the number of failures."""
    dice, began, failures = random.Random(seed), time.monotonic(), 0
    outcomes: Counter[str] = Counter()
    slowest = (0.0, "")
    for number in range(count):
        cut = number % 10 == 0
        text = valid(dice) if cut else hostile(dice)
        screen = Size(dice.randint(4, 5000), dice.randint(4, 5000))
        started = time.perf_counter()
        try:
            result = FAMILY.parse(Answer(text), (screen,))
            action = check(result, screen)
            check(FAMILY.parse_grounding(Answer(text), (screen,)), screen)
            if cut:
                assert action is not None, "a valid answer was refused"
                short = text[: dice.randint(0, len(text))]
                assert check(FAMILY.parse(Answer(short), (screen,)), screen) in (None, action), f"cut to {short!r}"
            outcomes[result.kind if isinstance(result, ParseFailure) else type(result.actions[0]).__name__] += 1
        except Exception:
            failures += 1
            print(f"case {number} of seed {seed}, {screen}: {text[:2000]!r}")
            traceback.print_exc(limit=4, file=sys.stdout)
        slowest = max(slowest, (time.perf_counter() - started, text[:80]))
    print(f"{count} cases, {failures} failures, {time.monotonic() - began:.0f} s")
    print(f"slowest: {slowest[0]:.3f} s, {slowest[1]!r}")
    print(dict(outcomes.most_common()))
    return failures


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    sys.exit(bool(main(numbers[0] if numbers else 10_000, numbers[1] if len(numbers) > 1 else 0)))
