"""The same desktop for programs without an event loop: each call waits until it is done."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Self, TypeVar

from agent.api.desktop import AsyncDesktop
from agent.api.results import Look, Result
from agent.core.actions import Button
from agent.sandbox.desktop import Sandbox
from agent.screen.outline import Element

T = TypeVar("T")


class Desktop:
    """A desktop to look at and act on; a context manager. Every method does what `AsyncDesktop`'s does."""

    def __init__(self, desktop: AsyncDesktop) -> None:
        self._desktop = desktop
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        self._wait(self._desktop.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End what runs, close the connections, and end a sandbox."""
        with self._runner:
            self._wait(self._desktop.close())

    def stop(self) -> None:
        """Stop the run under way at once, from any thread. Its result has the outcome "stopped"."""
        self._desktop.stop()

    @property
    def bundles(self) -> list[Path]:
        """The records of its runs, oldest first."""
        return self._desktop.bundles

    @property
    def sandbox(self) -> Sandbox:
        """The throw-away desktop. Raises UsageError on the person's own."""
        return self._desktop.sandbox

    def do(self, instruction: str) -> Result:
        """Do what a sentence says, with the chosen engine. Raises MaiError if the run cannot begin."""
        return self._wait(self._desktop.do(instruction))

    def repeat(self, name: str, /, **values: str) -> Result:
        """Do a recipe again with these values of its parameters. Raises UsageError for a missing or wrong recipe."""
        return self._wait(self._desktop.repeat(name, **values))

    def look(self) -> Look:
        """Return the screen now. Raises EnvironmentLacksError."""
        return self._wait(self._desktop.look())

    def find(self, name: str, role: str = "", window: str = "") -> Element | None:
        """Return the best element of a name that is on the screen now; None if there is none."""
        return self._wait(self._desktop.find(name, role, window))

    def expect(self, name: str, role: str = "", window: str = "", within: float = 5.0) -> Element:
        """Wait until an element of a name is on the screen, and return it. Raises NotSeenError after `within` s."""
        return self._wait(self._desktop.expect(name, role, window, within))

    def expect_gone(self, name: str, role: str = "", window: str = "", within: float = 5.0) -> None:
        """Wait until no element of a name is on the screen. Raises NotSeenError after `within` seconds."""
        self._wait(self._desktop.expect_gone(name, role, window, within))

    def click(self, name: str, role: str = "", window: str = "", *, button: Button = "left", count: int = 1) -> Result:
        """Click an element by its name. Raises NotDoneError, for example if it is not on the screen."""
        return self._wait(self._desktop.click(name, role, window, button=button, count=count))

    def type(self, text: str, into: str = "", *, replace: bool = False) -> Result:
        """Type text where the keyboard focus is, or into a named field. Raises NotDoneError."""
        return self._wait(self._desktop.type(text, into, replace=replace))

    def press(self, chord: str) -> Result:
        """Press keys, such as "ctrl+s". Raises NotDoneError, and UsageError for an unknown key."""
        return self._wait(self._desktop.press(chord))

    def open(self, name: str) -> Result:
        """Start an application, or open a file of the home. Raises NotDoneError."""
        return self._wait(self._desktop.open(name))

    def close_window(self, title: str = "") -> Result:
        """Close the front window, or the one of that title. Raises NotDoneError."""
        return self._wait(self._desktop.close_window(title))

    def set(self, control: str, value: "str | bool | float") -> Result:
        """Switch a control on or off, set its number, or choose one of its values. Raises NotDoneError."""
        return self._wait(self._desktop.set(control, value))

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(coroutine)
