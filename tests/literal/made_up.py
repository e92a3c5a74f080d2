"""Made-up screens: outlines from a few words, and chats about them, as the engine is asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from PIL import Image

from agent.core.changes import Change
from agent.core.geometry import Region, Size
from agent.core.notes import Note
from agent.families.base import Call, PastStep, PromptRequest
from agent.families.literal.family import FUNCTION
from agent.literal.engine import Engine
from agent.screen.encode import EncodedImage, encode
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


#: A screenshot that nobody has to look at.
PICTURE = encode(Image.new("RGB", (SIZE.width, SIZE.height)), "png")


@dataclass(frozen=True)
class Screen:
    """What is known of a screen."""

    outline: Outline | None = None
    changes: tuple[Change, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    picture: EncodedImage = PICTURE


def screen(*elements, changes=(), environ=None, picture=PICTURE, **values):
    """What is known of a screen."""
    return Screen(outline(*elements, **values), tuple(changes), environ or {}, picture)


def talk(instruction, now, *steps):
    """A request of a run, after these steps."""
    return PromptRequest(
        instruction, (now.picture,), steps, outline=now.outline, changes=now.changes, options={"environ": now.environ}
    )


def taken(reply, before, *notes):
    """The answer of the engine as a past step."""
    return past(call_of(reply), before, *notes)


def past(call, before, *notes, said=None):
    """A past step; `said` is what the person answered to it."""
    note = " ".join(map(str, notes)) or None
    calls = (Call(FUNCTION, call),)
    return PastStep("", calls, user_reply=said, note=note, outline=before.outline, changes=before.changes)


def follow(instruction, *screens, notes=None, engine=None, stays=False):
    """The replies to an instruction, one a screen, until it ends.

    `notes` are what the program said of the steps: of all alike, or by their numbers. `stays`: so does the last screen.
    """
    engine = engine or Engine()
    steps, replies = [], []
    for now in (*screens, *[screens[-1]] * (12 if stays else 0)):
        replies.append(engine.reply(talk(instruction, now, *steps)))
        if replies[-1].arguments["action"] in ("terminate", "answer"):
            break
        said = notes.get(len(steps), ()) if isinstance(notes, dict) else notes or ()
        steps.append(taken(replies[-1], now, *((said,) if isinstance(said, Note) else said)))
    return replies


def call_of(reply):
    """The answer's call."""
    return dict(reply.arguments)


def ending(reply):
    """How a run ends by the answer: its status, and whether that is verified."""
    return reply.arguments.get("status"), reply.arguments.get("verified")


def setting(what, before, after):
    """A setting that changed."""
    return Change("setting", what, before, after)
