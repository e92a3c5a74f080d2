"""Requests of steps 1, 2, 5 and 12, held against what each family's published client sends.

A family's `golden.json` says where that was read ("source"), gives a history of eleven steps, and the messages of each
request: for every message its role and parts, "IMAGE" for a screenshot, "SYSTEM" for a system text. The system text is
our own wording of the published format, so it is held against "system", the texts that must stand in it, in that order;
{"has": [...]} in place of any other text means the same for it.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.commands.models.exchanges import read_request
from agent.families.registry import family_names, get_family
from agent.model.request import to_openai
from foundation.families import family_folder

STEPS = ("1", "2", "5", "12")


def golden(name: str) -> dict[str, Any]:
    """What a family's requests must be."""
    data: dict[str, Any] = json.loads(golden_file(name).read_text(encoding="utf-8"))
    return data


def golden_file(name: str) -> Path:
    return family_folder(name) / "golden.json"


def sent(name: str, step: int) -> list[dict[str, Any]]:
    """The messages of a request, as the family's own client orders them."""
    told, family = golden(name), get_family(name)
    data = {"instruction": told["instruction"], "steps": told["history"][: step - 1], **told.get("screen", {})}
    request = family.request(read_request(data, family, {"style": "reference", **told.get("options", {})}))
    return to_openai(request.messages, lambda _image: "IMAGE")


def has_all(text: str, wanted: list[str]) -> bool:
    """Whether the texts stand in it, in their order."""
    position = 0
    for piece in wanted:
        found = text.find(piece, position)
        if found < 0:
            return False
        position = found + len(piece)
    return True


def check_message(written: dict[str, Any], wanted: dict[str, Any], system: list[str]) -> None:
    content = written["content"] or []
    parts = [part if part == "IMAGE" else part["text"] for part in content]
    assert written["role"] == wanted["role"]
    assert len(parts) == len(wanted["parts"]), (parts, wanted["parts"])
    for part, expected in zip(parts, wanted["parts"], strict=True):
        if expected == "SYSTEM":
            assert has_all(part, system), (part, system)
        elif isinstance(expected, dict):
            assert has_all(part, expected["has"]), (part, expected)
        else:
            assert part == expected
    for key in ("tool_calls", "tool_call_id", "reasoning_content"):
        assert written.get(key) == wanted.get(key)


@pytest.mark.parametrize("name", [name for name in family_names() if golden_file(name).is_file()])
@pytest.mark.parametrize("step", STEPS)
def test_a_request_is_message_for_message_what_the_published_client_sends(name: str, step: str) -> None:
    told = golden(name)
    assert told["source"]
    assert len(told["history"]) >= 11
    written, wanted = sent(name, int(step)), told["requests"][step]
    assert [message["role"] for message in written] == [message["role"] for message in wanted]
    for message, expected in zip(written, wanted, strict=True):
        check_message(message, expected, told["system"])
