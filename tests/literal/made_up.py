"""Made-up screens: outlines from a few words, and chats about them, as the engine is asked."""

import base64
import io
from dataclasses import replace

from PIL import Image

from agent.core.changes import Change
from agent.core.geometry import Region, Size
from agent.families.literal.screen_text import ScreenText
from agent.literal.state.conversation import MEMORY, Conversation, Move
from agent.screen.outline import Element, Outline, ShownWindow

SIZE = Size(1000, 800)
WINDOW = ShownWindow("Settings", "settings", Region(100, 100, 600, 500), active=True)


def element(role, name="", x=200, y=200, w=100, h=20, **values):
    """An element of the window in front."""
    values = {"window": WINDOW.title, "app": WINDOW.app, "source": "both" if name else "tree"} | values
    values["states"] = frozenset(values.get("states", ()))
    return Element(values.pop("id", 0), role, name, Region(x, y, w, h), **values)


def words(name, x=200, y=200, **values):
    """Words that were read, and that no element tells."""
    return element("label", name, x, y, 8 * len(name), 14, source="words", **values)


def outline(*elements, windows=(WINDOW,), lacks=""):
    """An outline of these elements, numbered in their order."""
    numbered = (replace(one, id=one.id or number) for number, one in enumerate(elements, 1))
    return Outline(SIZE, tuple(numbered), tuple(windows), lacks)


class Picture:
    """A screenshot that nobody has to look at."""

    size = SIZE
    image = Image.new("RGB", (SIZE.width, SIZE.height))


def screen(*elements, changes=(), **values):
    """What is known of a screen."""
    return ScreenText(outline(*elements, **values), tuple(changes))


def talk(instruction, now, *moves, reached=()):
    """The chat as the engine sees it."""
    return Conversation(instruction, list(moves), tuple(reached), now, Picture())


def move(intent, call, before=None, *notes, part=0, about=""):
    """A past answer."""
    return Move(part, intent, call, before, about, tuple(notes))


def taken(reply, before, *notes):
    """The answer of the engine as a past one."""
    call = dict(reply.arguments)
    kept = call.pop(MEMORY)
    return move(kept["intent"], call, before, *notes, part=kept["part"], about=kept.get("about", ""))


def call_of(reply):
    """The answer's call without the memory."""
    return {name: value for name, value in reply.arguments.items() if name != MEMORY}


def ending(reply):
    """How a run ends by the answer: its status, and whether that is verified."""
    return reply.arguments.get("status"), reply.arguments.get("verified")


def setting(what, before, after):
    """A setting that changed."""
    return Change("setting", what, before, after)


def data_url(image):
    """An image as a chat has it."""
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
