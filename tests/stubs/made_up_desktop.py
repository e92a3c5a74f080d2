"""A desktop of no system at all: a white screen with our terminal on its left quarter and an editor on the rest.

Run as a program, it carries out a whole run on it, and prints what happened as JSON.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from io import BytesIO
from typing import Any

from PIL import Image
from stubs.desk import SETTLE, FakeScreen
from stubs.endpoint import DONE, Behaviour, Exchange, FakeEndpoint, act, say

from agent.core.geometry import DesktopPoint, Region
from agent.desktop.input.hand import InputHand
from agent.desktop.protocol.desktop import Abilities, Opens
from agent.desktop.protocol.hand import ActionFailedError
from agent.desktop.protocol.windows import Layer, Window

TERMINAL, EDITOR = Window("left", "mai-agent", "Term", None), Window("right", "Untitled", "Editor", 1)
REGIONS = {"left": Region(0, 0, 64, 256), "right": Region(64, 0, 192, 256)}


class MadeUpWindows:
    """Both windows, side by side; which one is active is the desktop's to say."""

    def __init__(self, desktop: "MadeUpDesktop") -> None:
        self._desktop = desktop

    def windows(self):
        return [TERMINAL, EDITOR]

    def window(self, identifier):
        return next((window for window in self.windows() if window.id == identifier), None)

    def active(self):
        return self.window(self._desktop.focus)

    def stacking(self):
        return ["right", "left"]

    def at(self, x, y):
        return next(self.window(name) for name, region in REGIONS.items() if region.contains(DesktopPoint(x, y)))

    def region(self, identifier):
        return REGIONS.get(identifier)

    def visible(self, identifiers):
        return [REGIONS[identifier] for identifier in identifiers]

    def layers(self):
        return [Layer(window, REGIONS[window.id], REGIONS[window.id]) for window in (TERMINAL, EDITOR)]

    def layers_at(self, points):
        return [self.at(*point).id for point in points]

    def is_ordinary(self, identifier):
        return True

    def kind(self, identifier):
        return ""

    def pointer(self):
        return 128, 128

    def activate(self, identifier):
        self._desktop.focus = identifier
        return True

    def of_terminal(self, environ):
        return TERMINAL

    def close(self):
        pass


class MadeUpInput:
    """Writes down what is pressed and moved; every event is a change on the screen."""

    def __init__(self, screen: FakeScreen) -> None:
        self.events: list[str] = []
        self.closed = False
        self._screen = screen

    def _note(self, event: str) -> None:
        self.events.append(event)
        self._screen.marks += 1

    def position(self):
        return 128, 128

    def move(self, x, y):
        self._note(f"move {x},{y}")

    def held(self):
        return []

    def has_key(self, name):
        return name != "f13"

    def press(self, press):
        self._note(f"+{press.name}")

    def release(self, presses):
        self._note(" ".join(f"-{press.name}" for press in presses))

    def scroll(self, dx, dy):
        self._note(f"wheel {dx},{dy}")

    def set_busy(self, busy):
        pass

    def lost(self, error):
        return error

    def enter(self, text, press, check_stop):
        """As a text entry: what is pasted, and Enter for each line end behind it."""
        body = text.rstrip("\n")
        press(("ctrl", "v"))
        self.events[-3:] = [f"paste {body}"]  # two keys, released together
        for _ in text[len(body) :]:
            press(("enter",))

    def close(self):
        self.closed = True


class MadeUpDesktop:
    """See `agent.desktop.protocol.desktop.Desktop`; `stop` ends what its hand does."""

    name = "nowhere"
    abilities = Abilities(stop_key=False, remarks=("There is no sound.",))
    home = DesktopPoint(128, 128)
    monitors = (Region(0, 0, 256, 256),)

    def __init__(self, stop, monitor=None, environ=None, kind="auto") -> None:
        self.screen = FakeScreen()
        self.applications = self
        self.text_entry = self.input = MadeUpInput(self.screen)
        self.hand = InputHand(stop, self.input, self.text_entry, self.applications)
        self.focus = "left"
        self.watched: list[Any] = []
        self.closed = False

    def names(self):
        return ["Editor"]

    def identify(self, name, application=""):
        return Opens(("Editor", "editor", "editor")) if name == "editor" else Opens()

    def starting(self, names, folder, *, opened):
        return frozenset()

    def open(self, name, stop, application=""):
        raise ActionFailedError("its hand opens nothing")

    def open_windows(self):
        return MadeUpWindows(self)

    def open_witness(self, environ, without=()):
        return None

    def open_elements(self):
        return None

    def shows(self, environ):
        return True

    def watch(self, stop_key, takeover):
        self.watched.append((stop_key, takeover))
        return ""

    def check_input(self):
        return "a made-up hand"

    def close(self):
        self.closed = True


async def drive(endpoint: FakeEndpoint) -> dict[str, Any]:
    """Everything that the run said and did."""
    from agent.events.run_events import Acted, ApprovalAsked, Observed, RunFinished, Warned
    from agent.model.endpoint import Endpoint
    from agent.model.engines import Engine
    from agent.run.control import Steering
    from agent.run.models.settings import RunSettings
    from agent.run.session import Request, run
    from agent.safety.policy import Approval, Policy
    from agent.safety.stop import StopSwitch
    from foundation.endpoints import normalize_url

    desktops: list[MadeUpDesktop] = []

    def opened(*arguments: Any) -> MadeUpDesktop:
        desktops.append(MadeUpDesktop(*arguments))
        return desktops[0]

    class Someone:
        async def approve(self, action, question):
            desktops[0].focus = "left"  # as one must to answer
            return Approval(allowed=True, by="you")

        async def ask(self, question):
            return None

    events: list[Any] = []
    engine = Engine("endpoint", Endpoint(normalize_url(endpoint.url), "", "MAI-UI-8B"))
    settings, policy = RunSettings("write to them", settle=SETTLE), Policy.load("risky")
    request = Request(settings, {"actor": engine}, policy, stop_key="f1", open_desktop=opened)
    someone = Someone()
    await run(request, someone, StopSwitch(), events.append, Steering())
    desktop = desktops[0]
    image = next(event.image for event in events if isinstance(event, Observed))
    pixels = Image.open(BytesIO(image.data)).convert("RGB")
    [(stop_key, takeover)] = desktop.watched
    return {
        "outcome": next(event.outcome for event in events if isinstance(event, RunFinished)),
        "warned": [event.message for event in events if isinstance(event, Warned)],
        "acted": [event.error or event.detail for event in events if isinstance(event, Acted)],
        "asked": [event.scope for event in events if isinstance(event, ApprovalAsked)],
        "events": desktop.input.events,
        "pixels": [pixels.getpixel((10, 128)), pixels.getpixel((200, 128))],
        "watched": [stop_key, takeover.rest is desktop.hand.rest, takeover.is_ours((3, 3)), takeover.is_ours((99, 3))],
        "focus": desktop.focus,
        "closed": [desktop.closed, desktop.screen.closed, desktop.input.closed],
        "imported": sorted(name for name in ("Xlib", "mss", "pyautogui", "pyperclip") if sys.modules.get(name)),
    }


def while_thinking(change: Callable[[], None], answer: str) -> Behaviour:
    """The answer of a model that takes its time: something happens on the desktop before it comes."""

    def behave(exchange: Exchange) -> None:
        change()
        say(answer)(exchange)

    return behave


def move_editor() -> None:
    """The person moves a window."""
    REGIONS["right"] = Region(80, 0, 176, 256)


SCRIPT = [
    say(act("click", coordinate=[100, 500])),  # on our own terminal
    say(act("type", text="hello")),  # our terminal has the focus: it goes to the window used before
    say(act("type", text="sudo reboot")),  # a rule asks
    while_thinking(move_editor, act("click", coordinate=[700, 500])),
    say(act("click", coordinate=[700, 500])),
    say(DONE),
]

if __name__ == "__main__":
    for name in ("Xlib", "mss", "pyautogui", "pyperclip"):
        sys.modules[name] = None  # type: ignore[assignment]  # None is how an import is barred
    with FakeEndpoint(SCRIPT) as served:
        print(json.dumps(asyncio.run(drive(served))))
