"""AutoGLM-Phone: what its models call sensitive is asked before it is done."""

import pytest

from agent.core.geometry import Size
from agent.families.base import Decision, PromptRequest
from agent.families.registry import get_family
from foundation.chat_stream import Answer


@pytest.mark.parametrize(("message", "asked"), [(', message="Pay now"', True), (', message=""', False), ("", False)])
def test_a_tap_with_a_message_is_one_that_a_person_must_agree_to(message: str, asked: bool) -> None:
    answer = Answer(f'<think>a</think><answer>do(action="Tap", element=[5,6]{message})</answer>')
    read = get_family("autoglm-phone").parse(answer, [Size(1920, 1088)])
    assert isinstance(read, Decision)
    assert bool(read.objection) == asked


def test_a_desktop_has_hotkeys_and_a_phone_has_none() -> None:
    family = get_family("autoglm-phone")
    for style, told in (("desktop", True), ("reference", False)):
        request = family.request(PromptRequest("do it", (None,), apps=("Files",), options={"style": style}))
        assert ("Hotkey" in "".join(request.texts())) == told
