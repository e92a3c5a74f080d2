"""Takes screenshots of throw-away desktops for the navigator, with what is in front and where the targets are.

    .venv/bin/python scripts/tiny-vlm/desktops.py OUT --sizes 640x480,800x600 [--each 60]

The literal engine opens the applications and finds the targets once in each desktop. Then windows are moved and
resized, and colours, themes and the pointer changed. Targets keep their place in their window.
"""

import argparse
import json
import random
import time
from pathlib import Path
from typing import Any

import mai_agent
from agent.core.geometry import DesktopPoint, Region
from agent.evals import making

APPS = {"thunar": "file manager", "xfce4-terminal": "terminal", "mousepad": "text editor"}
FRAMES = ("Default", "Default", "Daloa", "Kokodi", "Moheli", "Default-hdpi")
BACKDROP = "/backdrop/screen0/monitorscreen/workspace0"


class Stage(making.Stage):
    """One throw-away desktop whose windows are moved about."""

    def __init__(self, desk: mai_agent.Desktop, size: tuple[int, int], rng: random.Random) -> None:
        super().__init__(desk.sandbox)
        self.desk, self.size, self.rng = desk, size, rng
        self.front: dict[str, Any] = {}  # "settings" or an application's words, and its window
        self.targets: dict[str, tuple[int, int]] = {}  # from the left top corner of the settings' window
        self.page, self.dark = False, False

    def tell(self, *command: str) -> str:
        """Run a program inside and return its output."""
        return str(self.box.run(*command).stdout).strip()

    def corner(self) -> tuple[int, int]:
        """Return the left top corner of the settings' window."""
        found = self.manager.region(self.front["settings"])
        assert found is not None, "the settings are closed"
        return found.left, found.top

    def press(self, name: str) -> None:
        """Click a target in the settings' window."""
        (left, top), (x, y) = self.corner(), self.targets[name]
        self.click(DesktopPoint(left + x, top + y))
        time.sleep(1.2)

    def locate(self, name: str, words: str) -> None:
        """Let the literal engine find a target on the screen."""
        (x, y), (left, top) = self.desk.expect(words, within=15).box.middle.rounded(), self.corner()
        self.targets[name] = (x - left, y - top)

    def set_up(self, shoot: Any) -> None:
        """Open everything, as a run would, and find the targets."""
        shoot()
        for app in (*APPS.values(), "settings"):
            self.desk.open(app)
            self.front[app] = self.windows()[-1]
            shoot(app)
        self.locate("Appearance", "Appearance")
        self.turn()
        shoot("settings")
        self.locate("dark", "Adwaita-dark")
        self.press("dark")
        self.dark = True
        shoot("settings")
        x, y = self.targets["dark"]
        self.targets["light"] = (x - 22, y + 40)  # the next row; the engine cannot read every theme's name in it
        self.press("light")
        theme = self.tell("xfconf-query", "-c", "xsettings", "-p", "/Net/ThemeName")
        if theme != "Adwaita":
            raise AssertionError(f"the row of the light theme is elsewhere: {theme}")
        self.dark = False
        shoot("settings")

    def look_different(self) -> None:
        """Change themes and colours."""
        rng = self.rng
        self.dark = rng.random() < 0.5
        theme = "Adwaita-dark" if self.dark else "Adwaita"
        colour = [word for _ in range(3) for word in ("-t", "double", "-s", f"{rng.random():.2f}")]
        backdrop = ["xfconf-query", "-c", "xfce4-desktop", "-p", f"{BACKDROP}/rgba1", "-a", "-n"]
        self.paint([
            ["xfconf-query", "-c", "xsettings", "-p", "/Net/ThemeName", "-n", "-t", "string", "-s", theme],
            ["xfconf-query", "-c", "xfwm4", "-p", "/general/theme", "-n", "-t", "string", "-s", rng.choice(FRAMES)],
            [*backdrop, *colour, "-t", "double", "-s", "1"],
        ])  # fmt: skip
        time.sleep(1.2)

    def turn(self) -> None:
        """Turn from the overview to the page, or back."""
        if self.page:
            self.manager.dismiss(self.front["settings"])
            time.sleep(0.5)
            self.front["settings"] = self.open(["xfce4-settings-manager"])
            time.sleep(1)
        else:
            self.press("Appearance")
        end = time.monotonic() + 5
        wanted = "Settings" if self.page else "Appearance"
        while self.title() != wanted and time.monotonic() < end:
            time.sleep(0.2)
        time.sleep(0.7)
        self.page = self.title() == "Appearance"

    def title(self) -> str:
        """Return the title of the settings' window; "" if it is gone."""
        found = self.manager.window(self.front["settings"])
        return "" if found is None else found.title

    def bring(self, app: str) -> None:
        """Move and resize a window, and bring it to the front."""
        (w, h), rng, window = self.size, self.rng, self.front[app]
        whole = rng.random() < 0.35
        self.tell(
            "wmctrl", "-i", "-r", hex(window), "-b", f"{'add' if whole else 'remove'},maximized_vert,maximized_horz"
        )
        width, height = rng.randint(min(w, 540), min(w, 900)), rng.randint(min(h - 110, 370), min(h - 100, 640))
        x, y = rng.randint(0, max(0, w - width)), rng.randint(27, max(28, h - height - 30))
        self.place(window, None if whole else Region(x, y, width, height))
        time.sleep(0.3)


def record(size: tuple[int, int], out: Path, each: int, seed: int) -> None:
    """Take the screenshots of one desktop."""
    rng = random.Random(seed)
    name = f"{size[0]}x{size[1]}"
    lines = (out / f"{name}.jsonl").open("a")
    options = {"size": name, "engine": "literal", "runs": str(out / "runs")}
    with mai_agent.sandbox(**options) as desk, Stage(desk, size, rng) as stage:
        (out / "apps.json").write_text(json.dumps(stage.desktop.applications.names()[:60]))  # as many as a run names
        count = 0

        def shoot(app: str = "") -> None:
            nonlocal count
            count += 1
            file = f"{name}-{seed}-{count:03}.png"
            stage.desktop.screen.grab().image.save(out / file)
            row: dict[str, Any] = {"file": file, "front": app, "page": stage.page, "dark": stage.dark}
            if app == "settings":
                left, top = stage.corner()
                row["targets"] = {n: (left + x, top + y) for n, (x, y) in stage.targets.items()}
            lines.write(json.dumps(row) + "\n")
            lines.flush()

        stage.set_up(shoot)
        for number in range(each):
            if number % 4 == 0:
                stage.look_different()
            draw = rng.random()
            if draw < 0.1:
                stage.tell("wmctrl", "-k", "on")
                app = ""
            else:
                app = "settings" if draw < 0.7 else rng.choice(list(APPS.values()))
                if app == "settings" and rng.random() < 0.5:
                    stage.turn()
                    if rng.random() < 0.4:  # as it came up
                        time.sleep(0.5)
                        shoot(app)
                stage.bring(app)
            stage.tell("xdotool", "mousemove", *(str(rng.randrange(side)) for side in size))
            time.sleep(0.5 if rng.random() < 0.8 else 1.5)  # sometimes long enough for a tooltip
            shoot(app)


def main() -> None:
    """Take them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--sizes", required=True)
    parser.add_argument("--each", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for number, size in enumerate(given.sizes.split(",")):
        width, height = map(int, size.split("x"))
        began = time.monotonic()
        try:
            record((width, height), given.out, given.each, given.seed + number)
        except Exception as error:  # the other sizes are worth having
            print(size, "failed:", repr(error), flush=True)
        print(size, f"{time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
