"""A family that did not exist before: one folder, which drives a scripted endpoint through a whole run.

It asks with a tool, reads the calls that the server read or lines of a syntax of its own, and counts in pixels of the
image as sent.
"""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from samples import check, samples_of
from stubs.desk import Desk
from stubs.endpoint import Behaviour, FakeEndpoint, events, pictures, say, texts

import agent.families
from agent.commands.models.exchanges import parse_line
from agent.core.actions import Click, TypeText
from agent.core.geometry import DesktopPoint
from agent.events.run_events import Decided, RunFinished, StepFinished
from agent.families.registry import detect_family, family_names, forget, get_family
from foundation import families
from foundation.errors import UsageError

DATA = """
name = "made-up"
made_by = "made_up.family.MadeUp"

[image]
factor = 28
min_pixels = 3_136
max_pixels = 1_003_520

[grid]
navigation = "pixels"

[sampling]
max_tokens = 300

[detect]
names = ["madeup", "mai-ui-made"]
"""

CODE = '''
"""Made-up: OpenAI tool calls, or lines such as `>> left_click at 12,34 "text"`; points in pixels of the image."""

import json
import re

from agent.families.base import Call, Family, ParseFailure, decide
from agent.families.shared.computer_use import Vocabulary, read_call
from agent.families.shared.text_family import in_turn
from agent.families.shared.points import grid_of
from agent.families.shared.answer_parts import tagged_calls, take_apart
from agent.model.request import Message, TextPart
from agent.model.request import ChatRequest
from foundation.chat_stream import ToolCall
from foundation.families import family_data

_LINE = re.compile(r'>> (\\w+)(?: at (\\d+,\\d+))?(?: "(.*)")?')
_TOOL = {"type": "function", "function": {"name": "computer_use", "parameters": {"type": "object"}}}


class MadeUp(Family):
    def request(self, prompt):
        opening = [Message.text("system", "Use the computer."), Message.text("user", prompt.instruction)]
        thinking = {"enable_thinking": prompt.options.get("thinking", True)}
        messages = in_turn(opening, prompt, self._replay)
        return ChatRequest(messages, self.facts.sampling, tools=[_TOOL], stop=["<end>"], template_arguments=thinking)

    def _replay(self, step):
        if not step.answer.tool_calls:
            yield Message.text("assistant", step.answer.content)
            return
        calls = [ToolCall(call.id or "c", call.name, json.dumps(dict(call.arguments))) for call in step.calls]
        yield Message("assistant", tool_calls=tuple(calls), reasoning=step.thought)
        for call in calls:
            yield Message.result(call.id, TextPart(" ".join(step.replies) or "done"))

    def written(self, thought, calls):
        return "\\n".join([thought, *(f">> {call.arguments['action']}" for call in calls)])

    def parse(self, answer, sent):
        parts = take_apart(answer)
        calls = _lines(answer.content) if ">>" in answer.content else parts.calls or tagged_calls(parts.text)
        calls = calls or ParseFailure("no_action", "there is no call")
        words = Vocabulary(grid_of(family_data(self.facts.name)["grid"]["navigation"], sent))
        return decide(answer.reasoning or answer.content.partition(">>")[0].strip(), calls,
                      lambda call: read_call(call, words))


def _lines(text):
    found = [_LINE.fullmatch(line.strip()) for line in text.splitlines() if line.startswith(">>")]
    if not all(found):
        return ParseFailure("bad_argument", "a line is >> action at x,y")
    return [Call("computer_use", {"action": match[1], "coordinate": match[2], "text": match[3]}) for match in found]
'''

SAMPLES = [
    {"answer": {"content": "Save.\n>> left_click at 10,20"}, "sent": [196, 196], "thought": "Save.",
     "actions": [{"type": "click", "point": [10, 20], "button": "left", "count": 1}]},
    {"answer": {"content": '>> left_click at 10,20\n>> type "a, b"'}, "sent": [196, 196],
     "actions": [{"type": "click", "point": [10, 20], "button": "left", "count": 1}, {"type": "type", "text": "a, b"}]},
    {"answer": {"content": ">> left_click at 900,20"}, "sent": [196, 196], "failure": "off_screen"},
]  # fmt: skip


@pytest.fixture(autouse=True)
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The folder, among the others."""
    folder = tmp_path / "made_up"
    (folder / "samples").mkdir(parents=True)
    (folder / "family.toml").write_text(DATA)
    (folder / "family.py").write_text(CODE)
    (folder / "samples" / "own.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in SAMPLES))
    assert sum(len(path.read_text().splitlines()) for path in folder.rglob("*.*") if path.is_file()) < 150
    monkeypatch.setattr(families, "ROOTS", (*families.ROOTS, tmp_path))
    monkeypatch.setattr(agent.families, "__path__", [*agent.families.__path__, str(tmp_path)])
    yield
    forget()


def calls(*written: dict[str, Any], reasoning: str = "") -> Behaviour:
    """An answer of tool calls, streamed as servers do."""
    deltas: list[dict[str, Any]] = [{"reasoning_content": reasoning}] if reasoning else []
    for index, arguments in enumerate(written):
        text = json.dumps(arguments)
        head = {"index": index, "id": f"call-{index}", "function": {"name": "computer_use", "arguments": text[:5]}}
        deltas += [{"tool_calls": [head]}, {"tool_calls": [{"index": index, "function": {"arguments": text[5:]}}]}]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return events(*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}, "[DONE]")


def test_a_folder_is_all_that_a_family_needs_to_be_found() -> None:
    assert "made-up" in family_names()
    assert detect_family("someone/MadeUp-7B") == "made-up"
    assert detect_family("MAI-UI-Made-7B") == "made-up", "the longest spelling decides"
    assert detect_family("MAI-UI-7B") == "mai-ui"
    assert families.image_rule("made-up").fit(1920, 1080) == (1316, 728)
    for sample in samples_of("made-up"):
        check(sample)
    with pytest.raises(UsageError, match="no grounding mode"):
        get_family("made-up").grounding_request("the gear", None)


def test_its_pixels_are_mapped_to_the_screen_with_a_factor_for_each_axis() -> None:
    line = json.dumps({"id": 1, "text": ">> left_click at 658,364", "width": 1920, "height": 1080}).encode()
    (action,) = parse_line(line, get_family("made-up"), grounding=False)["actions"]
    assert action["point"] == [960.0, 540.0]


async def test_it_drives_a_whole_run_with_tool_calls_and_lines() -> None:
    click = {"action": "left_click", "coordinate": [126, 63]}
    script = [
        calls(click, reasoning="The button is there."),
        say('Now I write.\n>> type "hello"'),
        say("I do not know."),
        calls({"action": "terminate", "status": "success"}),
    ]
    with FakeEndpoint(script) as endpoint:
        desk = Desk(endpoint, family="made-up")
        told = await desk.run()
    assert desk.hand.done == [Click(DesktopPoint(128, 64)), TypeText("hello")]  # 252 pixels were sent of 256
    assert isinstance(told[-1], RunFinished)
    assert told[-1].outcome == "done"
    decided = [event for event in told if isinstance(event, Decided)]
    assert [event.thought for event in decided[:2]] == ["The button is there.", "Now I write."]
    assert [event.failure is None for event in decided] == [True, True, False, True]
    first, second, third, last = endpoint.requests
    assert first["tools"][0]["function"]["name"] == "computer_use"
    assert (first["stop"], first["max_tokens"]) == (["<end>"], 300)
    assert first["chat_template_kwargs"] == {"enable_thinking": True}
    assistant, result = second["messages"][3:5]
    assert assistant["tool_calls"][0]["id"] == result["tool_call_id"] == "call-0"
    assert json.loads(assistant["tool_calls"][0]["function"]["arguments"]) == click
    assert assistant["reasoning_content"] == "The button is there."
    assert texts(third, "assistant") == ['Now I write.\n>> type "hello"']
    assert len(pictures(last)) == 3


async def test_a_list_of_actions_is_carried_out_in_order() -> None:
    both = [{"action": "left_click", "coordinate": [126, 63]}, {"action": "type", "text": "hello"}]
    with FakeEndpoint([calls(*both), calls({"action": "terminate", "status": "success"})]) as endpoint:
        desk = Desk(endpoint, family="made-up")
        told = await desk.run()
    assert desk.hand.done == [Click(DesktopPoint(128, 64)), TypeText("hello")]
    assert sum(isinstance(event, StepFinished) for event in told) == 2


def unread_keys(data: dict[str, Any]) -> list[str]:
    """The keys of a family.toml that nothing reads."""
    keys = tomllib.loads((Path(__file__).parent / "data/family_keys.toml").read_text())
    known = {*keys["top"], *keys["any"], *keys["tables"]}
    tables = ((data[name], names) for name, names in keys["tables"].items() if isinstance(data.get(name), dict))
    return [*(data.keys() - known), *(key for table, names in tables for key in table.keys() - set(names))]


@pytest.mark.parametrize("name", families.family_names())
def test_every_key_of_a_family_is_read(name: str) -> None:
    assert unread_keys(tomllib.loads((families.family_folder(name) / "family.toml").read_text())) == []


@pytest.mark.parametrize("wrong", ["[histroy]\nimages = 3", "[history]\nimags = 3", "madeby = 1"])
def test_a_misspelt_key_is_found(wrong: str) -> None:
    assert len(unread_keys(tomllib.loads(wrong))) == 1


def test_a_family_can_be_data_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "another"
    folder.mkdir()
    copied = (families.family_folder("gta1") / "family.toml").read_text()
    (folder / "family.toml").write_text(copied.replace('name = "gta1"', 'name = "another"'))
    monkeypatch.setattr(families, "ROOTS", (*families.ROOTS, tmp_path))
    assert type(get_family("another")) is type(get_family("gta1"))
