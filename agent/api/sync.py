"""The same desktop for programs without an event loop: each call waits until it is done."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from agent.api.desktop import AsyncDesktop
from agent.sandbox.desktop import Sandbox

P = ParamSpec("P")
T = TypeVar("T")


def _waiting(
    method: Callable[Concatenate[AsyncDesktop, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["Desktop", P], T]:
    @wraps(method)
    def wait(self: "Desktop", /, *args: P.args, **kwargs: P.kwargs) -> T:
        self._desktop.check_open()
        return self._runner.run(method(self._desktop, *args, **kwargs))

    return wait


class Desktop:
    """A desktop to look at and act on; a context manager. Every method does what `AsyncDesktop`'s does."""

    do = _waiting(AsyncDesktop.do)
    repeat = _waiting(AsyncDesktop.repeat)
    look = _waiting(AsyncDesktop.look)
    find = _waiting(AsyncDesktop.find)
    expect = _waiting(AsyncDesktop.expect)
    expect_gone = _waiting(AsyncDesktop.expect_gone)
    click = _waiting(AsyncDesktop.click)
    type = _waiting(AsyncDesktop.type)
    press = _waiting(AsyncDesktop.press)
    open = _waiting(AsyncDesktop.open)
    close_window = _waiting(AsyncDesktop.close_window)
    set = _waiting(AsyncDesktop.set)

    def __init__(self, desktop: AsyncDesktop) -> None:
        self._desktop = desktop
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        self._runner.run(self._desktop.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End what runs, close the connections, and end a sandbox."""
        with self._runner:
            self._runner.run(self._desktop.close())

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
