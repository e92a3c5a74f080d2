"""Checks on a running KWin that it tells its windows, their places and their order, and brings one to the front."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from agent.core.geometry import Size
from agent.desktop.portal.windows import open_described_windows

PROBE = Path(__file__).resolve().parents[2] / "tests/stubs/probe_window.py"


def until(true: Callable[[], bool], what: str) -> None:
    """Wait until something is true; SystemExit names it where it never is."""
    deadline = time.monotonic() + 20
    while not true():
        if time.monotonic() >= deadline:
            raise SystemExit(f"KWin: never happened: {what}")
        time.sleep(0.1)


def main() -> None:
    """Open two windows, and ask about them."""
    windows = open_described_windows(os.environ)
    if windows is None:
        raise SystemExit("KWin: nobody tells of the windows")
    environ = os.environ | {"GDK_BACKEND": "wayland"}
    for title in ("one", "two"):
        command = ["/usr/bin/python3", "-W", "ignore", str(PROBE), "/dev/null", title]
        subprocess.Popen(command, env=environ)
        until(lambda title=title: title in [one.title for one in windows.windows()], f"{title} is listed")  # type: ignore[misc]
    one, two = windows.windows()
    until(lambda: windows.active() == two, "the second window has the focus")
    region = windows.region(one.id)
    assert region is not None and region.size == Size(1280, 800), region
    assert (windows.at(600, 600), windows.visible(frozenset({one.id}))) == (two, [])
    assert windows.activate(one.id)
    until(lambda: windows.active() == one, "the first window has the focus again")
    assert windows.at(600, 600) == one
    began = time.monotonic()
    windows.layers()
    print(f"KWin: windows, places, order and focus are told; a look took {1000 * (time.monotonic() - began):.0f} ms")


if __name__ == "__main__":
    main()
