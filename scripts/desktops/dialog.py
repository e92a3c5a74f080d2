"""Answers the real dialog of GNOME 48's portal as a person may, and looks what comes of each answer.

    scripts/desktops/enter TREE gnome python /mai/scripts/desktops/dialog.py

The person is a session of Mutter's own, which asks nobody; it clicks at places of a screen of 1280 by 800.
"""

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from agent.desktop.portal.consent import PortalSession, RestoreToken, open_portal
from agent.desktop.portal.screen import PortalScreen
from agent.desktop.portal.session import open_mutter
from agent.safety.stop import StopSwitch
from foundation.errors import MaiError

CANCEL, SHARE, INTERACTION, MARK = (360, 189), (900, 178), (896, 323), (1226, 16)
BLUE = (53, 132, 228)
SECONDS = 60.0


class Person:
    """Sees the screen, and clicks."""

    def __init__(self) -> None:
        self._session = open_mutter(os.environ, None)
        self._eye = PortalScreen(self._session)
        for x in (600, 601):
            self._session.move(x, 700)
            time.sleep(0.5)

    def sees_dialog(self) -> bool:
        pixel = self._eye.grab().image.getpixel(SHARE)
        return isinstance(pixel, tuple) and all(abs(one - other) < 25 for one, other in zip(pixel, BLUE, strict=True))

    def clicks(self, at: tuple[int, int]) -> None:
        self._session.move(*at)
        time.sleep(0.5)
        for down in (True, False):
            self._session.button(0x110, down=down)
        time.sleep(1.0)


def asked(person: Person, *clicks: tuple[int, int]) -> PortalSession | MaiError:
    """What comes of these answers."""
    found: list[PortalSession | MaiError] = []

    def ask() -> None:
        try:
            found.append(open_portal(os.environ, None, StopSwitch(), seconds=SECONDS))
        except MaiError as error:
            found.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    if clicks:
        wait(person.sees_dialog, "the dialog is there")
        time.sleep(1.0)
    for at in clicks:
        person.clicks(at)
    asking.join()
    return found[0]


def wait(true: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not true():
        if time.monotonic() >= deadline:
            sys.exit(f"never: {what}")
        time.sleep(0.1)


def check(true: object, what: str) -> None:
    if not true:
        sys.exit(f"not so: {what}")
    sys.stdout.write(f"{what}\n")


def main() -> None:
    state = tempfile.mkdtemp()
    os.environ["MAI_AGENT_STATE"] = state
    person = Person()
    check("refused" in str(asked(person, CANCEL)), "Cancel is told as a refusal")
    check("Allow Remote Interaction" in str(asked(person, SHARE)), "Share alone is told by the switch that is missing")
    session = asked(person, INTERACTION, SHARE)
    check(isinstance(session, PortalSession) and session.has_clipboard, "the switch and Share open a session")
    assert isinstance(session, PortalSession)
    session.close()
    check(Path(state, "portal.json").stat().st_mode & 0o777 == 0o600, "the token is for this user alone")
    again = asked(person)
    check(isinstance(again, PortalSession) and RestoreToken().read(), "the next session opens without a dialog")
    assert isinstance(again, PortalSession)
    ended = threading.Event()
    again.on_closed(ended.set)
    time.sleep(1.0)
    try:
        person.clicks(MARK)
    except Exception as error:  # the person's own session ends with it
        sys.stdout.write(f"(the person's too: {error})\n")
    check(ended.wait(SECONDS), "the mark in the bar ends the session")


if __name__ == "__main__":
    main()
