"""`mai-agent prompt`: a request in a file, its chat messages as JSON."""

import json
from pathlib import Path
from typing import Any

import pytest
from commandline import CommandLine

from foundation.errors import ExitStatus

IMAGE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "[IMAGE_DATA]"}}]}
CLICK = {"thought": "I click.", "action": {"action": "click", "coordinate": [63, 500]}}
REQUEST = {"instruction": "Open the settings", "steps": [CLICK, CLICK, CLICK], "images": 2}


def prompt(mai: CommandLine, data: Any, *options: str) -> list[dict[str, Any]]:
    stdin = data if isinstance(data, bytes) else json.dumps(data).encode()
    ran = mai("prompt", "--family", "mai-ui", "--request", "-", *options, stdin=stdin)
    assert (ran.status, ran.err) == (ExitStatus.DONE, "")
    messages: list[dict[str, Any]] = json.loads(ran.out)
    return messages


def said(message: dict[str, Any]) -> str:
    (part,) = message["content"]
    assert part["type"] == "text"
    text: str = part["text"]
    return text


def test_the_reference_style_prints_the_published_messages(mai: CommandLine) -> None:
    messages = prompt(mai, REQUEST, "--style", "reference")
    assert [message["role"] for message in messages] == [
        *("system", "user", "assistant", "assistant", "user", "assistant", "user"),
    ]
    assert said(messages[1]) == "Open the settings"
    assert messages[4] == messages[6] == IMAGE
    assert said(messages[2]) == (
        "<thinking>\nI click.\n</thinking>\n<tool_call>\n"
        '{"name":"mobile_use","arguments":{"action":"click","coordinate":[62,500]}}\n</tool_call>'
    )


def test_the_desktop_style_is_the_default_and_replays_to_the_letter(mai: CommandLine) -> None:
    messages = prompt(mai, REQUEST)
    assert '"coordinate":[63,500]' in said(messages[2])
    assert messages == prompt(mai, REQUEST, "--style", "desktop")


def test_the_number_of_images_defaults_to_the_familys(mai: CommandLine) -> None:
    data = {"instruction": "x", "steps": [CLICK] * 5}
    assert sum(message == IMAGE for message in prompt(mai, data)) == 3


def test_a_request_may_be_no_more_than_an_instruction(mai: CommandLine) -> None:
    messages = prompt(mai, {"instruction": "x"})
    assert [message["role"] for message in messages] == ["system", "user", "user"]
    assert messages[2] == IMAGE
    assert prompt(mai, {"instruction": "x", "steps": None, "tools": None}) == messages


def test_replies_and_results_follow_their_answer(mai: CommandLine) -> None:
    steps = [
        {"thought": "Ask.", "action": {"action": "ask_user", "text": "Which?"}, "user_reply": "Der 2. 你"},
        {"thought": "Look.", "action": {"name": "maps", "arguments": {"q": "路"}}, "tool_result": "  two\n"},
    ]
    messages = prompt(mai, {"instruction": "x", "steps": steps, "images": 1})
    assert said(messages[3]) == "Der 2. 你"
    assert '{"name":"maps","arguments":{"q":"路"}}' in said(messages[4])
    assert said(messages[5]) == "  two\n"


def test_grounding_is_text_then_image_in_one_message(mai: CommandLine) -> None:
    system, user = prompt(mai, {"instruction": "the gear"}, "--grounding")
    assert system["role"] == "system"
    assert user["content"] == [{"type": "text", "text": "the gear\n"}, IMAGE["content"][0]]  # type: ignore[index]


def test_a_file_replaces_the_system_text(mai: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "system.txt"
    path.write_text("Be brief – 简短.\n", encoding="utf-8")
    assert said(prompt(mai, REQUEST, "--system-prompt", str(path))[0]) == "Be brief – 简短.\n"


def test_a_request_is_read_from_a_file(mai: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    path.write_text(json.dumps(REQUEST), encoding="utf-8")
    ran = mai("prompt", "--family", "mai-ui", "--request", str(path))
    assert ran.status == ExitStatus.DONE
    assert json.loads(ran.out) == prompt(mai, REQUEST)


def test_the_variant_without_a_thought_asks_for_none(mai: CommandLine) -> None:
    assert "thinking" not in said(prompt(mai, REQUEST, "--no-thinking")[0])


def test_a_lone_surrogate_in_a_request_is_printed_as_the_replacement_character(mai: CommandLine) -> None:
    messages = prompt(mai, rb'{"instruction": "a\ud800b"}')
    assert said(messages[1]) == "a\ufffdb"


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"", "JSON"),
        (b"{", "JSON"),
        (b"[" * 100_000, "JSON"),
        (b"[]", "instruction"),
        (b"{}", "instruction"),
        (b'{"instruction": 5}', "instruction"),
        (b'{"instruction": "x", "images": 0}', "images"),
        (b'{"instruction": "x", "images": true}', "images"),
        (b'{"instruction": "x", "images": "3"}', "images"),
        (b'{"instruction": "x", "steps": {}}', "steps"),
        (b'{"instruction": "x", "steps": "abc"}', "steps"),
        (b'{"instruction": "x", "tools": {"name": "a"}}', "tools"),
        (b'{"instruction": "x", "steps": [5]}', "Step 1"),
        (b'{"instruction": "x", "steps": [{"action": {}}, {"thought": "x"}]}', "Step 2"),
        (b'{"instruction": "x", "steps": [{"action": {}, "thought": 5}]}', "thought"),
        (b'{"instruction": "x", "steps": [{"action": {}, "tool_result": {"a": 1}}]}', "tool_result"),
        (b'{"instruction": "x", "steps": [{"action": {}, "user_reply": ["a"]}]}', "user_reply"),
    ],
)
def test_a_request_that_is_wrong_is_a_usage_error_that_names_the_place(
    mai: CommandLine, data: bytes, named: str
) -> None:
    ran = mai("prompt", "--family", "mai-ui", "--request", "-", stdin=data)
    assert ran.status == ExitStatus.USAGE
    assert ran.out == ""
    assert named in ran.err


def test_a_missing_file_is_a_usage_error(mai: CommandLine, tmp_path: Path) -> None:
    ran = mai("prompt", "--family", "mai-ui", "--request", str(tmp_path / "none.json"))
    assert ran.status == ExitStatus.USAGE
    assert "none.json" in ran.err
