"""What it costs to know where an action would land, and to keep our own window out of the picture.

    python scripts/bench/policy.py [--size 1920x1080] [--rounds 40]

Starts a sandbox with the settings window and a terminal that is taken for ours. Prints medians, and ratios to what the
thing is compared with in the same run: reading a caption to reading the whole screen, a masked capture to a plain one.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent.actions import Click, OpenApp, PressKeys, TypeText
from agent.desktop.apps.launcher import Launcher
from agent.desktop.masked_screen import MaskedScreen
from agent.desktop.portable.screen import MssScreen
from agent.desktop.surroundings import DesktopSurroundings
from agent.desktop.x11.windows import X11Windows, open_windows
from agent.geometry import DesktopPoint, Size
from agent.safety.policy import Policy
from agent.sandbox.desktop import SandboxSpec, start_sandbox
from agent.screen.ocr import Ocr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=Size.parse, default=Size(1920, 1080))
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    sandbox = start_sandbox(SandboxSpec(options.size))
    try:
        sandbox.applied()
        subprocess.Popen(["xterm", "-geometry", "100x30+60+60"], env=sandbox.environ, stderr=subprocess.DEVNULL)
        time.sleep(1)
        subprocess.Popen(["xfce4-settings-manager"], env=sandbox.environ, stderr=subprocess.DEVNULL)
        time.sleep(2)
        measure(options.rounds, sandbox.environ)
    finally:
        sandbox.close()


def measure(rounds: int, environ: dict[str, str]) -> None:
    windows = X11Windows()
    settings = next(window for window in windows.windows() if window.app == "Xfce4-settings-manager")
    own = next(window for window in windows.windows() if window.app == "XTerm")
    at = windows.region(settings.id)
    assert at is not None
    plain, masked = MssScreen(), MaskedScreen(MssScreen(), frozenset({own.id}), open_windows)
    around = DesktopSurroundings(
        masked, Launcher(environ, open_windows), DesktopPoint(at.left + 9, at.top + 9), open_windows
    )
    policy = Policy.load("risky")
    steps = [(x, y) for x in range(40, at.width - 20, 130) for y in range(90, at.height - 20, 70)]
    clicks = [Click(DesktopPoint(at.left + x, at.top + y)) for x, y in steps]
    reader = Ocr("The measurement")
    whole = plain.grab().image

    def click(number: int) -> None:
        action = clicks[number % len(clicks)]
        policy.question(action, around.of(action))

    def other(action: object) -> Callable[[int], object]:
        return lambda _: policy.question(action, around.of(action))  # type: ignore[arg-type]

    costs = {
        "judge a click": timed(click, rounds),
        "judge a text of 40 letters": timed(other(TypeText("a text of forty letters or even more of ")), rounds),
        "judge a text of 20,000 letters": timed(other(TypeText("a text of forty letters or even more of " * 500)), 5),
        "judge a chord": timed(other(PressKeys(("ctrl", "s"))), rounds),
        "judge an application": timed(other(OpenApp("calculator")), rounds),
        "read the whole screen": timed(lambda _: reader.words(whole), 3),
        "plain capture": timed(lambda _: plain.grab(), rounds),
        "masked capture": timed(lambda _: masked.grab(), rounds),
    }
    for name, (median, worst) in costs.items():
        print(f"{name:32} {median:8.2f} ms  (worst {worst:.1f})")
    print(
        f"a click's judgement is {costs['judge a click'][0] / costs['read the whole screen'][0]:.3f} of a whole reading"
    )
    extra = costs["masked capture"][0] - costs["plain capture"][0]
    print(f"the mask adds {extra:.2f} ms, {extra / costs['plain capture'][0]:.2f} of a plain capture")


def timed(call: Callable[[int], object], rounds: int) -> tuple[float, float]:
    """Median and worst of some calls in milliseconds, after one that is not counted."""
    call(0)
    times: list[float] = []
    for number in range(rounds):
        began = time.perf_counter()
        call(number)
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times), max(times)


if __name__ == "__main__":
    main()
