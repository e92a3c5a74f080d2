"""The answers that a family's folder brings along, each with what it must be read as."""

import json
from dataclasses import dataclass
from typing import Any

from agent.core.actions import to_json
from agent.core.geometry import Region, Size
from agent.families.base import ParseFailure
from agent.families.registry import get_family
from agent.screen.outline import Element, Outline
from foundation.chat_stream import Answer, ToolCall
from foundation.families import family_folder


@dataclass(frozen=True)
class Sample:
    """One line of a file in `samples/`."""

    family: str
    name: str
    data: dict[str, Any]


def samples_of(family: str) -> list[Sample]:
    """All samples of a family."""
    return [
        Sample(family, f"{family}: {path.stem} {number}", json.loads(line))
        for path in sorted((family_folder(family) / "samples").glob("*.jsonl"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    ]


def check(sample: Sample) -> None:
    """The answer is read as the sample says."""
    family, data = get_family(sample.family), sample.data
    written = data["answer"]
    calls = tuple(ToolCall("", each["name"], each["arguments"]) for each in written.get("tool_calls", ()))
    answer = Answer(written.get("content", ""), written.get("reasoning", ""), calls)
    sent = [Size(*data.get("sent", (1920, 1088)))]
    if data.get("grounding"):
        result = family.parse_grounding(answer, sent)
    else:
        result = family.parse_seen(answer, sent, told(data["outline"]) if "outline" in data else None)
    if isinstance(result, ParseFailure):
        assert result.kind == data.get("failure"), result
        return
    assert "failure" not in data, result
    assert [to_json(action) for action in result.actions] == data["actions"]
    assert result.thought == data.get("thought", "")


def told(outline: dict[str, Any]) -> Outline:
    """The outline that a request told: "size", and "elements" as [number, role, name, [left, top, width, height]]."""
    elements = [Element(number, role, name, Region(*box)) for number, role, name, box in outline["elements"]]
    return Outline(Size(*outline["size"]), tuple(elements))
