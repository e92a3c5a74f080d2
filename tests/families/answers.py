"""Answers of a MAI-UI model: valid ones as the model writes them, and the damage that happens to them."""

import json
from typing import Any

from hypothesis import strategies as st

from agent.core.actions import Action, points_of
from agent.core.geometry import GridPoint, Size
from agent.families.base import Decision, ParseFailure
from agent.families.registry import get_family
from foundation.chat_stream import Answer

FAMILY = get_family("mai-ui")
SCREEN = Size(1920, 1080)


def call(arguments: dict[str, Any] | str, name: str = "mobile_use") -> str:
    """The JSON of a call; a text as arguments is put in as it stands."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f'{{"name": {json.dumps(name)}, "arguments": {written}}}'


def answer(body: str | dict[str, Any], thought: str = "I act.") -> str:
    """A whole answer around a call; a dict stands for the arguments of mobile_use."""
    written = call(body) if isinstance(body, dict) else body
    return f"<thinking>\n{thought}\n</thinking>\n<tool_call>\n{written}\n</tool_call>"


def grounded(x: Any, y: Any, thought: str = "It is there.") -> str:
    """A whole grounding answer."""
    return f'<grounding_think>{thought}</grounding_think>\n<answer>\n{{"coordinate":[{x},{y}]}}\n</answer>'


def read(text: str) -> Decision | ParseFailure:
    """The text as the family reads it."""
    return FAMILY.parse(Answer(text), (SCREEN,))


def action(text: str) -> Action[GridPoint]:
    """The action of a text that must have one."""
    result = read(text)
    assert isinstance(result, Decision), result
    return result.actions[0]


def failure(text: str) -> ParseFailure:
    """The failure of a text that must have no action."""
    result = read(text)
    assert isinstance(result, ParseFailure), result
    return result


def ground(text: str) -> tuple[float, float]:
    """The point of a grounding answer that must have one."""
    result = FAMILY.parse_grounding(Answer(text), (SCREEN,))
    assert isinstance(result, Decision), result
    (point,) = points_of(result.actions[0])
    assert point.grid.width == point.grid.height == 1000
    return point.x, point.y


def ground_failure(text: str) -> ParseFailure:
    """The failure of a grounding answer that must have no point."""
    result = FAMILY.parse_grounding(Answer(text), (SCREEN,))
    assert isinstance(result, ParseFailure), result
    return result


grid_values = st.integers(0, 999)
coordinates = st.lists(grid_values, min_size=2, max_size=2)
boxes = st.builds(lambda a, b: [*map(min, a, b), *map(max, a, b)], coordinates, coordinates)
points = coordinates | boxes
directions = st.sampled_from(["up", "down", "left", "right"])
#: Text with everything in it that a parser could take for something else.
_TRAPS = [
    *(
        "<tool_call>",
        "</tool_call>",
        "{",
        "}",
        "[",
        "]",
        '"',
        "'",
        "\\",
        "\n",
        "“",
        "”",
        "：",
        "，",
        "[5,6]",
        "（7，8）",
    ),
    *('{"action":"click","coordinate":[1,2]}', '"coordinate":[3,4]', "</", "<", "#", "None", "é", "你好", " ", "a"),
    *("\\u0041", "<answer>", "</answer>", "\\'", "coordinate", ":", ",", "```", "1", "0.5"),
]
hostile = st.lists(st.sampled_from(_TRAPS), max_size=8).map("".join)
texts = hostile | st.text(max_size=30)
named = st.builds(lambda text: "A" + text, texts)  # never empty once it is stripped

arguments = st.one_of(
    st.fixed_dictionaries({"action": st.sampled_from(["click", "double_click", "long_press"]), "coordinate": points}),
    st.fixed_dictionaries({"action": st.just("swipe"), "direction": directions}, optional={"coordinate": points}),
    st.fixed_dictionaries({"action": st.just("drag"), "start_coordinate": points, "end_coordinate": points}),
    st.fixed_dictionaries({"action": st.sampled_from(["type", "open", "answer", "ask_user"]), "text": named}),
    st.fixed_dictionaries({"action": st.just("wait")}),
    st.fixed_dictionaries({"action": st.just("terminate"), "status": st.sampled_from(["success", "fail"])}),
    st.fixed_dictionaries({"action": st.just("system_button"), "button": st.sampled_from(["back", "home", "enter"])}),
)
#: Thoughts that talk about calls and points, but never close the thinking.
thoughts = texts.map(lambda text: "I see. " + text)


@st.composite
def valid_answers(draw: st.DrawFn) -> str:
    """A published-form answer, in one of the ways in which JSON may be written."""
    written = draw(arguments)
    compact = draw(st.booleans())
    body = json.dumps(
        {"name": "mobile_use", "arguments": written},
        ensure_ascii=draw(st.booleans()),
        separators=(",", ":") if compact else None,
    )
    return answer(body, draw(thoughts))
