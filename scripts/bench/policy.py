"""What it costs to know where an action would land, and to keep our own window out of the picture.

    python scripts/bench/policy.py [--size 1920x1080] [--rounds 40] [--busy 8]

Starts a sandbox with the settings window and a terminal that is taken for ours. Prints medians, and ratios to what the
thing is compared with in the same run: reading a caption to reading the whole screen, a masked capture to a plain one.
Prints how many clicks are asked about only because the application did not tell in time what they hit. With `--busy`,
so many processes compute meanwhile.
"""

import subprocess
import sys
from dataclasses import replace
from functools import partial

from common import ROOT, Times, desktop, desktop_arguments

from agent.core.actions import Action, Click, OpenApp, PressKeys, TypeText
from agent.core.geometry import DesktopPoint, Region
from agent.desktop.apps.launcher import Launcher
from agent.desktop.guard.reach import MaskedScreen, Reach
from agent.desktop.guard.surroundings import DesktopSurroundings
from agent.desktop.portable import MssScreen
from agent.desktop.trees.elements import AtspiElements
from agent.desktop.trees.switch import buses, session_bus
from agent.desktop.x11.windows import X11Windows, open_windows
from agent.safety.policy import Policy
from agent.screen.ocr import Ocr


def main() -> None:
    parser = desktop_arguments(__doc__)
    parser.add_argument("--busy", type=int, default=0)
    options = parser.parse_args()
    programs = ["xterm", "-geometry", "100x30+60+60"], ["xfce4-settings-manager"]
    with desktop(*programs, size=options.size) as environ:
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"], cwd=ROOT) for _ in range(options.busy)]
        try:
            measure(options.rounds, environ, Region(0, 0, options.size.width, options.size.height))
        finally:
            for one in busy:
                one.kill()


def measure(rounds: int, environ: dict[str, str], screen: Region) -> None:
    windows = X11Windows()
    settings = next(window for window in windows.windows() if window.app == "Xfce4-settings-manager")
    own = next(window for window in windows.windows() if window.app == "XTerm")
    at = windows.region(settings.id)
    assert at is not None
    plain, masked = MssScreen(), MaskedScreen(MssScreen(), Reach(open_windows, frozenset({own.id})))
    shown = X11Windows()
    elements = AtspiElements(partial(buses, session_bus(environ), shown.announced_bus()), shown, [screen])
    around = DesktopSurroundings(masked, Launcher(environ, open_windows), Reach(open_windows), lambda: elements)
    policy = Policy.load("risky")
    steps = [(x, y) for x in range(40, at.width - 20, 130) for y in range(90, at.height - 20, 70)]
    clicks = [Click(DesktopPoint(at.left + x, at.top + y)) for x, y in steps]
    reader = Ocr("The measurement")
    whole = plain.grab().image

    judged = late = 0

    def judge(action: Action[DesktopPoint]) -> None:
        nonlocal judged, late
        seen = around.of(action)
        judged += 1
        late += "elements" in seen.lost and policy.question(action, replace(seen, lost=frozenset())) is None
        policy.question(action, seen)

    text = "a text of forty letters or even more of "
    cases = (
        ("judge a click", rounds, lambda number: judge(clicks[number % len(clicks)])),
        ("judge a text of 40 letters", rounds, lambda _: judge(TypeText(text))),
        ("judge a text of 20,000 letters", 5, lambda _: judge(TypeText(text * 500))),
        ("judge a chord", rounds, lambda _: judge(PressKeys(("ctrl", "s")))),
        ("judge an application", rounds, lambda _: judge(OpenApp("calculator"))),
        ("read the whole screen", 3, lambda _: reader.words(whole)),
        ("plain capture", rounds, lambda _: plain.grab()),
        ("masked capture", rounds, lambda _: masked.grab()),
    )
    times = Times()
    for name, count, call in cases:
        times.repeat(name, count, call)
    for name in times.taken:
        print(f"{name:32} {times.median(name):8.2f} ms  (worst {times.worst(name):.1f})")
    print(f"{late} of {judged} actions are asked about only because an application was late")
    print(f"a click's judgement is {times.ratio('judge a click', 'read the whole screen'):.3f} of a whole reading")
    extra = times.median("masked capture") - times.median("plain capture")
    print(f"the mask adds {extra:.2f} ms, {extra / times.median('plain capture'):.2f} of a plain capture")


if __name__ == "__main__":
    main()
