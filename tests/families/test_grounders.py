"""Models that only find places: each is asked as its own client asks it, and never for an action."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.commands.models.exchanges import prompt_main as main
from agent.core.actions import Absent
from agent.core.geometry import Size
from agent.families.base import Call, Decision, PastStep, PromptRequest
from agent.families.registry import family_names, get_family
from foundation.chat_stream import Answer
from foundation.errors import UsageError

GROUNDERS = [name for name in family_names() if not get_family(name).acts]
#: What Qwen2.5-VL's function for a computer offers, whole, in the published order.
VOCABULARY = [
    '"enum": ["key", "type", "mouse_move", "left_click", "left_click_drag", "right_click", "middle_click", '
    '"double_click", "scroll", "wait", "terminate"]',
    '"keys"', '"text"', '"coordinate"', '"pixels"', '"time"', '"status"', '"enum": ["success", "failure"]',
]  # fmt: skip
#: Per family, of a 2560x1440 screen: what must stand in the system text, and the user's parts.
ASKED: dict[str, tuple[list[str], list[Any]]] = {
    "gta1": (["height is 1428", "width 2548", "exactly:\n(x,y)"], ["IMAGE", "the gear"]),
    "gelato": (["exactly:\n(x,y)"], ["IMAGE", "the gear"]),
    "infigui": (
        ["<think> </think>"],
        [
            "IMAGE",
            "The screen's resolution is 2548x1428.\n"
            'Find the UI element(s) for "the gear", and give the coordinates in JSON: [{"point_2d": [x, y]}, ...]',
        ],
    ),
    "jedi": (["<tools>", "resolution is 1932x1064", *VOCABULARY, "<tool_call>"], ["IMAGE", "\nthe gear"]),
    "groundnext": (["<tools>", "resolution is 2548x1428", *VOCABULARY, "<tool_call>"], ["IMAGE", "the gear"]),
    "os-atlas": ([], ["IMAGE", {"has": ['"the gear"', "(with bbox)"]}]),
    "uground": ([], ["IMAGE", {"has": ["(x, y)", "Description: the gear\nAnswer:"]}]),
    "showui": ([], [{"has": ["[x, y]", "from 0 to 1"]}, "IMAGE", "the gear"]),
    "ui-ins": (["<think></think>", '{"name": "grounding"', '"coordinate": [x, y]'], ["IMAGE", "the gear"]),
    "aguvis": (["pyautogui"], ["IMAGE", {"has": ["Instruction: the gear\n\nPrevious actions:\nNone\n"]}]),
    "holo1": ([], ["IMAGE", {"has": ["Click(x, y)", "\nthe gear"]}]),
    "holo1.5": ([], ["IMAGE", {"has": ['"click_absolute"', '"x"', '"y"', "Your target is:\nthe gear"]}]),
    "holo2": ([], ["IMAGE", {"has": ['"x"', '"maximum": 1000', "Your target is:\nthe gear"]}]),
    "holo3": ([], ["IMAGE", {"has": ['"x"', '"maximum": 1000', "Your target is:\nthe gear"]}]),
}


def prompted(family: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The messages that `mai-agent prompt --grounding` prints."""
    (tmp_path / "request").write_text(json.dumps({"instruction": "the gear", "width": 2560, "height": 1440}))
    assert main(["--family", family, "--grounding", "--request", str(tmp_path / "request")]) == 0
    messages: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return messages


def test_every_grounder_is_told_here() -> None:
    assert set(GROUNDERS) <= set(ASKED)


@pytest.mark.parametrize("family", ASKED)
def test_a_model_is_asked_for_a_point_as_its_own_client_asks(
    family: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    system, parts = ASKED[family]
    *before, user = prompted(family, tmp_path, capsys)
    assert len(before) == bool(system)
    for message in before:
        assert message["role"] == "system"
        assert all(piece in message["content"][0]["text"] for piece in system)
    told = ["IMAGE" if part["type"] == "image_url" else part["text"] for part in user["content"]]
    assert len(told) == len(parts)
    for written, wanted in zip(told, parts, strict=True):
        if isinstance(wanted, dict):
            assert all(piece in written for piece in wanted["has"])
        else:
            assert written == wanted


@pytest.mark.parametrize("family", GROUNDERS)
def test_a_grounder_decides_nothing_and_says_so(family: str) -> None:
    with pytest.raises(UsageError, match="find places and decide nothing") as refused:
        get_family(family).request(PromptRequest("do it", (None,)))
    assert "--grounder" in str(refused.value)


def test_the_first_of_several_candidates_is_the_answer_and_none_means_absent() -> None:
    family, sent = get_family("infigui"), (Size(1932, 1092),)
    several = Answer('[{"point_2d": [900, 300]}, {"point_2d": [10, 20]}]')
    read = family.parse_grounding(several, sent)
    assert isinstance(read, Decision)
    assert read.calls[0].arguments == {"coordinate": [900, 300]}
    nothing = family.parse_grounding(Answer("<think>No gear here.</think>[]"), sent)
    assert isinstance(nothing, Decision)
    assert nothing.actions == (Absent(),)


def test_holo_is_told_what_was_done_only_where_its_own_client_is_not_followed() -> None:
    steps = (
        PastStep("Open it.", (Call("click_element", {"element": "a", "x": 5, "y": 6}),), (None,), note="Nothing."),
    )
    for style, memory in (("desktop", True), ("reference", False)):
        prompt = PromptRequest("go", (None,), steps, options={"style": style})
        parts = get_family("holo1.5").request(prompt).messages[1].parts
        said = "".join(getattr(part, "text", "") for part in parts)
        assert "<observation step=2>" in said
        assert ("1. Open it." in said) == memory
        assert ("Nothing." in said) == memory
