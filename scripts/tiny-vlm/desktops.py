"""Takes screenshots of throw-away desktops for the navigator, with what is in front and where the targets are.

    .venv/bin/python scripts/tiny-vlm/desktops.py OUT --sizes 640x480,800x600 [--each 60]

The literal engine opens the applications and finds the targets once in each desktop. Then windows are moved and
resized, and colours, themes and the pointer changed. Targets keep their place in their window.
"""

import argparse
import json
import random
import re
import time
from pathlib import Path
from typing import Any

import mai_agent
from agent.desktop.factory import open_desktop
from agent.safety.stop import StopSwitch

APPS = {"thunar": "file manager", "xfce4-terminal": "terminal", "mousepad": "text editor"}
FRAMES = ("Default", "Default", "Daloa", "Kokodi", "Moheli", "Default-hdpi")
BACKDROP = "/backdrop/screen0/monitorscreen/workspace0"


class Stage:
    """One throw-away desktop whose windows are moved about."""

    def __init__(self, desk: mai_agent.Desktop, size: tuple[int, int], rng: random.Random) -> None:
        self.desk, self.box, self.size, self.rng = desk, desk.sandbox, size, rng
        desktop = open_desktop(StopSwitch(), None, self.box.environ)
        self.screen, self.apps = desktop.screen, desktop.applications.names()[:60]  # as many as a run names
        self.windows: dict[str, str] = {}  # "settings" or an application's words, and its X window
        self.targets: dict[str, tuple[int, int]] = {}  # from the left top corner of the settings' window
        self.page, self.dark = False, False

    def tell(self, *command: str) -> str:
        """Run a program inside and return its output."""
        return str(self.box.run(*command).stdout).strip()

    def geometry(self, window: str) -> dict[str, int]:
        """Return a window's client area: X, Y, WIDTH, HEIGHT."""
        lines = self.tell("xdotool", "getwindowgeometry", "--shell", window)
        return {name: int(value) for name, value in re.findall(r"^(X|Y|WIDTH|HEIGHT)=(-?\d+)", lines, re.MULTILINE)}

    def click(self, name: str) -> None:
        """Click a target in the settings' window."""
        place, (x, y) = self.geometry(self.windows["settings"]), self.targets[name]
        self.tell("xdotool", "mousemove", str(place["X"] + x), str(place["Y"] + y), "click", "1")
        time.sleep(1.2)

    def locate(self, name: str, words: str) -> None:
        """Let the literal engine find a target on the screen."""
        box = self.desk.expect(words, within=15).box
        place = self.geometry(self.windows["settings"])
        self.targets[name] = (box.left + box.width // 2 - place["X"], box.top + box.height // 2 - place["Y"])

    def set_up(self, shoot: Any) -> None:
        """Open everything, as a run would, and find the targets."""
        shoot()
        for app in (*APPS.values(), "settings"):
            self.desk.open(app)
            self.windows[app] = self.tell("xdotool", "getactivewindow")
            shoot(app)
        self.locate("Appearance", "Appearance")
        self.turn()
        shoot("settings")
        self.locate("dark", "Adwaita-dark")
        self.click("dark")
        self.dark = True
        shoot("settings")
        x, y = self.targets["dark"]
        self.targets["light"] = (x - 22, y + 40)  # the next row; the engine cannot read every theme's name in it
        self.click("light")
        theme = self.tell("xfconf-query", "-c", "xsettings", "-p", "/Net/ThemeName")
        if theme != "Adwaita":
            raise AssertionError(f"the row of the light theme is elsewhere: {theme}")
        self.dark = False
        shoot("settings")

    def look_different(self) -> None:
        """Change themes and colours."""
        rng = self.rng
        self.dark = rng.random() < 0.5
        self.set("xsettings", "/Net/ThemeName", "string", "Adwaita-dark" if self.dark else "Adwaita")
        self.set("xfwm4", "/general/theme", "string", rng.choice(FRAMES))
        colour = [word for _ in range(3) for word in ("-t", "double", "-s", f"{rng.random():.2f}")]
        name = f"{BACKDROP}/rgba1"
        self.tell("xfconf-query", "-c", "xfce4-desktop", "-p", name, "-a", "-n", *colour, "-t", "double", "-s", "1")
        time.sleep(1.2)

    def set(self, channel: str, name: str, kind: str, value: str) -> None:
        """Set a setting of XFCE."""
        self.tell("xfconf-query", "-c", channel, "-p", name, "-n", "-t", kind, "-s", value)

    def turn(self) -> None:
        """Turn from the overview to the page, or back."""
        if self.page:
            self.tell("wmctrl", "-i", "-c", self.windows["settings"])
            time.sleep(0.5)
            self.box.start("xfce4-settings-manager")
            found = self.tell("timeout", "15", "xdotool", "search", "--sync", "--onlyvisible", "--name", "^Settings$")
            self.windows["settings"] = found.splitlines()[-1]
            time.sleep(1)
        else:
            self.click("Appearance")
        end = time.monotonic() + 5
        wanted = "Settings" if self.page else "Appearance"
        while self.tell("xdotool", "getwindowname", self.windows["settings"]) != wanted and time.monotonic() < end:
            time.sleep(0.2)
        time.sleep(0.7)
        self.page = self.tell("xdotool", "getwindowname", self.windows["settings"]) == "Appearance"

    def place(self, app: str) -> None:
        """Move and resize a window, and bring it to the front."""
        (w, h), rng, window = self.size, self.rng, self.windows[app]
        if rng.random() < 0.35:
            self.tell("wmctrl", "-i", "-r", window, "-b", "add,maximized_vert,maximized_horz")
            self.tell("xdotool", "windowactivate", "--sync", window)
            return
        self.tell("wmctrl", "-i", "-r", window, "-b", "remove,maximized_vert,maximized_horz")
        width, height = rng.randint(min(w, 540), min(w, 900)), rng.randint(min(h - 110, 370), min(h - 100, 640))
        x, y = rng.randint(0, max(0, w - width)), rng.randint(27, max(28, h - height - 30))
        self.tell("xdotool", "windowsize", window, str(width), str(height), "windowmove", window, str(x), str(y),
                  "windowactivate", "--sync", window)  # fmt: skip
        time.sleep(0.3)

    def point_somewhere(self) -> None:
        """Move the pointer."""
        x, y = (self.rng.randrange(side) for side in self.size)
        self.tell("xdotool", "mousemove", str(x), str(y))


def record(size: tuple[int, int], out: Path, each: int, seed: int) -> None:
    """Take the screenshots of one desktop."""
    rng = random.Random(seed)
    name = f"{size[0]}x{size[1]}"
    lines = (out / f"{name}.jsonl").open("a")
    with mai_agent.sandbox(size=name, engine="literal", runs=str(out / "runs")) as desk:
        stage = Stage(desk, size, rng)
        (out / "apps.json").write_text(json.dumps(stage.apps))
        count = 0

        def shoot(app: str = "") -> None:
            nonlocal count
            count += 1
            file = f"{name}-{seed}-{count:03}.png"
            save(stage, out / file)
            row: dict[str, Any] = {"file": file, "front": app, "page": stage.page, "dark": stage.dark}
            if app == "settings":
                place = stage.geometry(stage.windows[app])
                row["targets"] = {n: (place["X"] + x, place["Y"] + y) for n, (x, y) in stage.targets.items()}
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
                stage.place(app)
            stage.point_somewhere()
            time.sleep(0.5 if rng.random() < 0.8 else 1.5)  # sometimes long enough for a tooltip
            shoot(app)


def save(stage: Stage, path: Path) -> None:
    """Write the screen as a run would see it."""
    from agent.screen.pixels import as_image

    as_image(stage.screen.grab().image).save(path)


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
