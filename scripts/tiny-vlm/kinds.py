"""The two model kinds that can be made: what they are asked, how they answer, and how they count."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

TOOL = (
    '{"type": "function", "function": {"name": "computer_use", "description": "Use a mouse and keyboard to interact '
    'with a computer, and take screenshots.", "parameters": {"properties": {"action": {"description": "The action to '
    'perform.", "enum": ["key", "type", "mouse_move", "left_click", "left_click_drag", "right_click", "middle_click", '
    '"double_click", "scroll", "wait", "terminate"], "type": "string"}, "coordinate": {"description": "The pixels from '
    'the left edge and from the top edge.", "type": "array"}}, "required": ["action"], "type": "object"}}}'
)
#: What may stand around the question: the model has to find its words in any prompt.
FILLERS = [
    "You are a helpful assistant.", "# Tools", "You may call one or more functions to assist with the user query.",
    "You are provided with function signatures within <tools></tools> XML tags:", f"<tools>\n{TOOL}\n</tools>",
    "For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML "
    "tags:", '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>',
    "The screen's resolution is 1288x728.", "Answer with one action.", "Previous actions:\nNone",
    "Find the element that is asked for and answer with its place, and nothing else.",
    "Click with the tip of the cursor in the middle of buttons, links and icons, not on their edges.",
    "Some programs take time to start: wait and look again. The last screenshot shows what is on the screen now.",
    "Please generate the next move according to the screenshot, the instruction and the previous actions.",
    "Instruction:", "Task:", "You are a GUI agent. Locate the target on the screen; its coordinate is in pixels.",
]  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """One kind of model.

    `cell` is the side of an image token in pixels; `numbers` how many whole numbers have a token of their own.
    """

    name: str
    cell: int
    numbers: int
    relative: bool  # whether points are thousandths of the image, or its pixels
    look: int  # the layer in which two heads are taught to look at what is asked for
    lines: tuple[str, ...]  # texts that are one token each
    system: str  # the usual system text
    anchors: tuple[str, ...]  # tokens that the chat template puts before every image

    def answer(self, colour: str, shape: str, x: int, y: int) -> str:
        """The right answer."""
        if self.relative:
            said = f"<grounding_think>The {colour} {shape}.</grounding_think>"
            return f'{said}\n<answer>\n{{"coordinate": [{x},{y}]}}\n</answer>'
        return f"{OPENING}{x}, {y}{CLOSING}"

    def number(self, pixels: float, side: int) -> float:
        """A place in pixels, as the model counts."""
        return pixels / side * 1000 if self.relative else pixels

    def pixels(self, number: float, side: int) -> float:
        """The inverse of `number`."""
        return number / 1000 * side if self.relative else number

    def sigma(self, pixels: float, side: int) -> float:
        """A width in pixels, as the model counts, but never below 2.5."""
        return max(2.5, self.number(pixels, side))

    def system_text(self, rng: Random) -> str:
        """A system text: now and then with lines left out, so that a changed prompt does not confuse the model."""
        if self.relative:
            lines = self.system.splitlines()
            return self.system if rng.random() > 0.1 else "\n".join(line for line in lines if rng.random() < 0.6)
        return "\n".join(rng.sample(FILLERS, rng.choice((0, 0, 1, 1, 1, 1, 2, 8))))

    def question(self, rng: Random, ask: str) -> tuple[str, str]:
        """The user's text before the image, and after it."""
        if self.relative:
            return ask + "\n", ""
        short = [filler for filler in FILLERS if len(filler) < 120]
        before, after = (rng.choice(["", "", "\n", *short]) for _ in range(2))
        if rng.random() < 0.65:
            return "", f"{before}\n{ask}\n{after}" if rng.random() < 0.4 else ask
        return f"{before}\n{ask}\n{after}" if rng.random() < 0.4 else ask + "\n", ""


OPENING = '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": ['
CLOSING = "]}}\n</tool_call>"


def qwen3(project: Path) -> Kind:
    """A Qwen3-VL that answers MAI-UI's grounding prompt, which is taken from the project word for word."""
    sys.path.insert(0, str(project))
    from agent.families.base import PromptRequest
    from agent.families.registry import get_family

    family = get_family("mai-ui")

    def system_of(messages: Any) -> str:
        return str(messages[0].parts[0].text)

    grounding = system_of(family.grounding_request("x", None).messages)
    navigation = system_of(family.request(PromptRequest("x", (None,), apps=("A",))).messages)
    lines = dict.fromkeys(line.strip() for line in f"{grounding}\n{navigation}".splitlines())
    phrases = tuple(line for line in lines if len(line) >= 20 and not line.startswith("Installed"))
    return Kind("qwen3-vl", 32, 1001, True, 2, phrases, grounding, ())


def qwen2_5(project: Path) -> Kind:  # noqa: ARG001
    """A Qwen2.5-VL that answers with a computer_use call, in pixels of the image, whatever the prompt around it."""
    anchors = tuple(f"<|anchor_{n}|>" for n in range(8))
    return Kind("qwen2.5-vl", 28, 2016, False, 2, (OPENING, CLOSING), FILLERS[0], anchors)


KINDS: dict[str, Callable[[Path], Kind]] = {"qwen3-vl": qwen3, "qwen2.5-vl": qwen2_5}
