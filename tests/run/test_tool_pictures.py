"""Pictures that a tool returns are shown to the model once, as far as the server takes images."""

import io
from typing import Any

import pytest
from PIL import Image
from stubs.desk import finish, run
from stubs.endpoint import DONE, Checks, act

from agent.run.loop.context import ToolAnswer

CALL = '<tool_call>{"name": "view", "arguments": {}}</tool_call>'


def png(size: tuple[int, int]) -> bytes:
    file = io.BytesIO()
    Image.new("RGBA", size, "red").save(file, "PNG")
    return file.getvalue()


class Camera:
    """One tool, which returns pictures."""

    names, definitions, remarks = ("view",), (), ()

    def __init__(self, *pictures: bytes) -> None:
        self.pictures = pictures

    async def call(self, name: str, arguments: Any) -> ToolAnswer:
        return ToolAnswer("It looks like this:\n[picture 1]", self.pictures)


def shown(request: dict[str, Any]) -> list[str]:
    """What the messages of a request hold, in order: their texts, and "image"."""
    parts = [part for message in request["messages"] for part in message["content"]]
    return [part["text"] if part["type"] == "text" else "image" for part in parts]


async def test_a_picture_of_a_tool_is_shown_once_before_the_screen() -> None:
    _, desk = await run([CALL, act("wait", time=0.01), DONE], tools=Camera(png((300, 200)), b"no picture"))
    _, second, third = map(shown, desk.endpoint.requests)
    at = next(number for number, part in enumerate(second) if part.startswith("The tool returned this."))
    assert second[at].endswith("not shown: 1."), "one of the two was no picture"
    assert second[at + 1 :] == ["image", "image"], "the picture, then the screen"
    assert not any(part.startswith("The tool returned this.") for part in third)


@pytest.mark.parametrize("most", [1, 2, 3])
async def test_pictures_of_tools_stay_within_the_images_that_the_server_takes(most: int) -> None:
    checks = Checks(images=most)
    events, desk = await run([CALL, DONE], checks=checks, tools=Camera(png((300, 200)), png((200, 300))))
    assert finish(events).outcome == "done"
    assert checks.largest_images == most
    told = [part for part in shown(desk.endpoint.requests[-1]) if "are not shown" in part]
    assert [part.endswith(f"not shown: {3 - most}.") for part in told] == [True] * (most < 3)
