"""How long the outline of each application takes, beside what was measured when the way of reading was chosen.

    python scripts/bench/outline.py [--rounds 12] [--only mousepad,galculator]

Starts every installed application of the table alone in one sandbox. "first" is the first look at it, "outline" the
median of the others: the whole of it, with windows, values and hit tests. "plain" asks four things of each of its nodes
one after another, in the same turns: how busy the machine is shows there. "then" is the figure for the nodes alone
(names, roles, states, boxes; no values, no hit tests) on an idle machine of two cores, third of three looks.
"""

import os
import shutil
import signal
import subprocess
import time
from contextlib import closing
from functools import partial

from common import Times, desktop, desktop_arguments

from agent.core.geometry import Region
from agent.desktop.trees.elements import AtspiElements
from agent.desktop.trees.switch import buses, session_bus
from agent.desktop.trees.tree import SCREEN, extents, getter, method
from agent.desktop.x11.windows import X11Windows

#: Commands, and milliseconds that a snapshot took then; None where none was written down. Those of GTK 4 are of 4.18,
#: but for the settings, which are of 4.8.
APPLICATIONS: dict[str, tuple[list[str], float | None]] = {
    "galculator": (["galculator"], 34),
    "mousepad": (["mousepad"], 2),
    "thunar": (["thunar"], None),
    "xfce4-appearance-settings": (["xfce4-appearance-settings"], None),
    "gnome-calculator": (["gnome-calculator"], 7),
    "gnome-text-editor": (["gnome-text-editor"], 5),
    "gnome-control-center": (["gnome-control-center", "appearance"], 15),
    "nautilus": (["nautilus"], 20),
    "kwrite": (["kwrite"], 96),
    "kcalc": (["kcalc"], None),
    "pluma": (["pluma"], None),
    "caja": (["caja", "--no-desktop"], None),
    "firefox-esr": (["firefox-esr"], 60),
    "chromium": (["chromium", "--no-sandbox", "--force-renderer-accessibility", "--no-first-run"], 115),
    "soffice": (["soffice", "--writer", "--norestore"], 175),
}


class OneProgram(X11Windows):
    """Only the windows that were not there before."""

    def __init__(self, before: set[object]) -> None:
        super().__init__()
        self._before = before

    def layers(self):  # type: ignore[no-untyped-def]
        return [layer for layer in super().layers() if layer.window.id not in self._before]


def main() -> None:
    parser = desktop_arguments(__doc__)
    parser.set_defaults(rounds=12)
    parser.add_argument("--only", default="", help="names, with commas between them")
    options = parser.parse_args()
    wanted = [name for name in options.only.split(",") if name] or list(APPLICATIONS)
    print(
        f"{'application':26} {'n':>4} {'first':>7} {'outline':>8} {'plain':>8} {'faster':>7} {'then':>6} {'ratio':>6}"
    )
    with desktop(size=options.size, session="gnome") as environ:
        for name in wanted:
            command, then = APPLICATIONS[name]
            if shutil.which(command[0]):
                measure(name, command, then, environ, options.rounds)
    print(f"milliseconds, medians of {options.rounds}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


def measure(name: str, command: list[str], then: float | None, environ: dict[str, str], rounds: int) -> None:
    with closing(X11Windows()) as windows:
        before = {layer.window.id for layer in windows.layers()}
    silent = subprocess.DEVNULL
    program = subprocess.Popen(command, env=environ, stdout=silent, stderr=silent, start_new_session=True)
    shown = OneProgram(before)
    elements = AtspiElements(partial(buses, session_bus(environ), shown.announced_bus()), shown, monitors())
    try:
        deadline = time.monotonic() + 30
        times = Times()
        while True:  # some register seconds after their window is there
            times.taken.pop("first", None)
            with times.of("first"):
                outline = elements.outline()
            if outline.elements or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        time.sleep(3)
        for _ in range(rounds):
            with times.of("outline"):
                outline = elements.outline()
            with times.of("plain"):
                plain(elements)
        median, slow = times.median("outline"), times.median("plain")
        ratio = f"{median / then:6.1f}" if then else "     -"
        print(
            f"{name:26} {len(outline.elements):4} {times.median('first'):7.0f} {median:8.0f} {slow:8.0f} "
            f"{slow / median:7.1f} {then or 0:6.0f} {ratio}  {outline.lacks}",
            flush=True,
        )
    finally:
        elements.close()
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        time.sleep(1)


def plain(elements: AtspiElements) -> None:
    """The same nodes, four calls each, one call after another."""
    bus = elements._connected()

    def one(call):  # type: ignore[no-untyped-def]
        yield [call]

    for seen in elements._seen:
        for ref in seen.tree.nodes:
            for call in (
                getter(ref, "Accessible", "Name"),
                method(ref, "Accessible", "GetRole", "u"),
                method(ref, "Accessible", "GetState", "au"),
                extents(ref, SCREEN),
            ):
                bus.ask(one(call))


def monitors() -> list[Region]:
    from agent.desktop.portable import MssScreen

    with closing(MssScreen()) as screen:
        return screen.monitors


if __name__ == "__main__":
    main()
