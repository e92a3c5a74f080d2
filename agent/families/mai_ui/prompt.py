"""MAI-UI's prompts: the published format and tokens, with explanations in our own words.

Two styles share one skeleton (system prompt; the instruction; then screenshots and answers in turn). `reference` sends
exactly the messages of the published client (Tongyi-MAI/MAI-UI, src/mai_naivigation_agent.py, Apache-2.0), oddities
included, to reproduce published behaviour. `desktop` names a desktop's actions and the machine's applications, replays
every call exactly as written, and tells the model what the program noticed.
"""

import copy
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.families.base import Call, PastStep, PromptRequest
from agent.families.shared.points import PointError, read_pair
from agent.families.shared.text_family import in_turn
from agent.model.request import Message

_TEXTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("prompt.toml").read_text(encoding="utf-8"))
#: The published client's scale; see `_as_reference_replays`.
_REFERENCE_SCALE = 999


def is_reference(options: Mapping[str, Any]) -> bool:
    """Return whether to use the published client's messages. The default is our own for a desktop."""
    return bool(options.get("style", "desktop") == "reference")


def is_thinking(options: Mapping[str, Any]) -> bool:
    """Return whether the model is asked for a thought, which is the default."""
    return bool(options.get("thinking", True))


def navigation_messages(prompt: PromptRequest, system: str | None = None) -> list[Message]:
    """Return the messages of a navigation request, in the chosen style. `system` replaces the system prompt."""
    system = _system_text(prompt) if system is None else system
    opening = [Message.text("system", system), Message.text("user", prompt.instruction)]
    reference = prompt.reference
    if prompt.skipped and not reference:
        opening.append(Message.text("user", f"({prompt.skipped} earlier steps are left out here.)"))

    def replay(step: PastStep) -> list[Message]:
        answer = _replay(step, reference=reference, thinking=is_thinking(prompt.options))
        # The published client has no notes. Remarks on a step are put where it puts a person's reply.
        return [Message.text("assistant", answer), *(Message.text("user", text) for text in step.replies)]

    return in_turn(opening, prompt, replay)


def _system_text(prompt: PromptRequest) -> str:
    reference = prompt.reference
    # The published client always asks for a thought. It lists ask_user and double_click only together with tools.
    thinking = is_thinking(prompt.options) or reference
    actions = [_TEXTS["desktop_actions"]]
    if reference:
        actions = [_TEXTS["phone_actions"], *([_TEXTS["phone_actions_with_tools"]] if prompt.tools else [])]
    output = _TEXTS["format_thinking" if thinking else "format_plain"]
    sections = [_TEXTS["role"], output, "\n".join(["## Action Space\n", *actions])]
    if prompt.apps and not reference:
        sections.append("## Applications\nInstalled on this machine: " + ", ".join(prompt.apps))
    if prompt.tools:
        listed = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in prompt.tools)
        call = ("<thinking>\n...\n</thinking>\n" if thinking else "") + _TEXTS["tool_call"]
        sections.append(_TEXTS["tools"].replace("{call}", call).replace("{tools}", listed))
    said = _TEXTS["notes"]
    notes = [said["coordinates"], *([said["thinking"]] if thinking else []), said["format"]]
    notes += [] if reference else said["desktop"]
    sections.append("\n- ".join(["## Note", *notes]))
    return "\n\n".join(sections)


def _replay(step: PastStep, *, reference: bool, thinking: bool) -> str:
    """Return a past answer as the model sees it again."""
    call = step.calls[0]
    if reference:
        call = Call("mobile_use", _as_reference_replays(call))
    return written(step.thought if thinking or reference else None, call, ascii_only=reference)


def written(thought: str | None, call: Call, *, ascii_only: bool = False) -> str:
    """Write an answer in the published form; without a thought for None."""
    shown = {"name": call.name, "arguments": dict(call.arguments)}
    body = f"<tool_call>\n{json.dumps(shown, separators=(',', ':'), ensure_ascii=ascii_only)}\n</tool_call>"
    return body if thought is None else f"<thinking>\n{thought}\n</thinking>\n{body}"


def _as_reference_replays(call: Call) -> dict[str, Any]:
    """Return a call's arguments as the published client writes them back, oddities included.

    When it parses an answer, it divides every coordinate by 999 (a box becomes its centre). When it writes, it
    multiplies only "coordinate" back, and truncates: 63, 126, 252, 504 and 509 come back one lower, and a drag's ends
    stay fractions. It also renames every call, tools included, to mobile_use.
    """
    arguments = copy.deepcopy(dict(call.arguments))
    for key in ("coordinate", "start_coordinate", "end_coordinate"):
        if key not in arguments:
            continue
        try:
            fractions = [value / _REFERENCE_SCALE for value in read_pair(arguments[key])]
        except PointError:
            continue
        whole = key == "coordinate"
        arguments[key] = [int(value * _REFERENCE_SCALE) for value in fractions] if whole else fractions
    return arguments
