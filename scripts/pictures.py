"""Makes the README's pictures: the desktop before and after a run, and the terminal application as it asks.

scripts/pictures [FOLDER]     (default: docs/images)
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from stubs.display import PlainDisplay  # noqa: E402

SENTENCE = "open settings and enable dark mode"
AGENT = [sys.executable, "-m", "agent", "--sandbox"]
#: The terminal: real pictures by sixel, in a font that is easily read at half its size.
XTERM = ["xterm", "-ti", "vt340", "-fa", "DejaVu Sans Mono", "-fs", "11", "-geometry", "112x32+0+0", "-bw", "0"]
XTERM += ["-xrm", "XTerm*numColorRegisters: 256", "-xrm", "XTerm*scrollBar: false", "-bg", "#121212"]
_WAITS_AT_MOST = 60.0


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    with tempfile.TemporaryDirectory() as work:
        before_and_after(Path(work) / "run", folder / "dark-mode.jpg")
        asking(Path(work) / "asking", folder / "terminal.png")


def before_and_after(runs: Path, picture: Path) -> None:
    """The middle of a run's last two screens, side by side: what its click changed."""
    subprocess.run([*AGENT, "--no-tui", "--runs", str(runs), SENTENCE], cwd=ROOT, check=True)
    screens = sorted(next(runs.iterdir()).joinpath("screens").glob("*.png"))
    first, last = (middle_of(Image.open(path).convert("RGB")) for path in screens[-2:])
    height = round(first.height * 596 / first.width)
    both = Image.new("RGB", (1200, height), "white")
    both.paste(first.resize((596, height)), (0, 0))
    both.paste(last.resize((596, height)), (604, 0))
    both.save(picture, quality=88)


def middle_of(screen: Image.Image) -> Image.Image:
    left, top = screen.width // 4, screen.height // 6
    return screen.crop((left, top, screen.width - left, screen.height - top))


def asking(runs: Path, picture: Path) -> None:
    """The terminal application, with the question about a click."""
    with PlainDisplay("1100x700") as display:
        environ = {**display.environ, "MAI_AGENT_IMAGES": "pixels"}
        environ["MAI_AGENT_STATE"] = str(runs / "state")
        command = [
            *XTERM,
            "-e",
            "env",
            "COLORTERM=truecolor",
            *AGENT,
            "--approve",
            "ask",
            "--runs",
            str(runs),
            SENTENCE,
        ]
        terminal = subprocess.Popen(command, cwd=ROOT, env=environ, start_new_session=True)
        try:
            for step in (1, 2):
                wait_for_asked(runs, step)
                press(environ, "y")
            wait_for_asked(runs, 3)
            time.sleep(3)  # the picture is drawn
            shot = grab(environ)
            press(environ, "ctrl+c")
            time.sleep(2)
            press(environ, "ctrl+q")
            terminal.wait(15)
        finally:
            if terminal.poll() is None:
                os.killpg(terminal.pid, signal.SIGTERM)
    shot.crop(shot.point(lambda value: 255 * (value > 0)).getbbox()).quantize(255).save(picture, optimize=True)


def wait_for_asked(runs: Path, count: int) -> None:
    """Wait until a question stands there so long that keys answer it."""
    end = time.monotonic() + _WAITS_AT_MOST
    while len([*runs.glob("*/screens/*.png")]) < count:
        if time.monotonic() > end:
            raise SystemExit(f"step {count} was not begun within {_WAITS_AT_MOST:.0f} s")
        time.sleep(0.2)
    time.sleep(3)


def press(environ: dict[str, str], key: str) -> None:
    subprocess.run(["xdotool", "key", key], env=environ, check=True)


def grab(environ: dict[str, str]) -> Image.Image:
    from mss import MSS

    os.environ["DISPLAY"] = environ["DISPLAY"]
    with MSS() as screen:
        shot = screen.grab(screen.monitors[0])
        return Image.frombytes("RGB", shot.size, shot.rgb)


if __name__ == "__main__":
    main()
