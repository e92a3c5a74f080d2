"""Situations in which text is typed, as the hand meets them: what is selected how, and what is to stand there then."""

import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from stubs.http_stub import Handler, HttpStub
from stubs.typing_fields import BEGIN, CHROMIUM, Fields, wait_for

from agent.core.actions import Click, PressKeys, TypeText
from agent.desktop.protocol.hand import Hand
from agent.desktop.x11.windows import X11Windows

#: A model, and the performer of several actions, leave a click more time than this before keys follow.
_AFTER_CLICK = 0.1
#: Toolkits count clicks together that are closer in time than this (400 to 500 ms).
_APART = 0.5
LONG = ('A line of some length that is typed as one of many, with (brackets) and "quotes".\n' * 31)[:2500].rstrip()
UNICODE = "Grüße, 日本語, 🙂 e\u0301 — Ω“"
LINES = "first\n\tsecond\n  third: 'x' {y}\nlast"


def everything(hand: Hand, fields: Fields, field: str) -> None:
    """Click, and select all by a key."""
    hand.perform(Click(fields.point(field)))
    time.sleep(_AFTER_CLICK)
    hand.perform(PressKeys(("ctrl", "/") if fields.toolkit == "Tk" else ("ctrl", "a")))


def word(hand: Hand, fields: Fields, field: str) -> None:
    """Double-click the first word."""
    hand.perform(Click(fields.point(field), count=2))


def line(hand: Hand, fields: Fields, field: str) -> None:
    """Triple-click."""
    hand.perform(Click(fields.point(field), count=3))


def to_its_end(hand: Hand, fields: Fields, field: str) -> None:
    """Select with shift+End."""
    hand.perform(Click(fields.point(field)))
    time.sleep(_AFTER_CLICK)
    hand.perform(PressKeys(("home",)))
    hand.perform(PressKeys(("shift", "end")))


def nothing(hand: Hand, fields: Fields, field: str) -> None:
    """Only put the caret at the end."""
    hand.perform(Click(fields.point(field)))
    time.sleep(_AFTER_CLICK)
    hand.perform(PressKeys(("end",)))


@dataclass(frozen=True)
class Situation:
    """A text typed at once, with no time between, after something was selected in a field."""

    select: Callable[[Hand, Fields, str], None]
    field: str
    text: str
    ends_as: str = ""  # where that is more than the text
    told: str = ""  # where not the field tells it: "entered", what stood in the entry when Enter came


SITUATIONS = {
    "all, short": Situation(everything, "entry", "new name.txt"),
    "all, other characters": Situation(everything, "entry", UNICODE),
    "triple click": Situation(line, "entry", "new name.txt"),
    "double click": Situation(word, "entry", "that", "that stood there"),
    "double click, other characters": Situation(word, "entry", "größer", "größer stood there"),
    "shift+End, signs": Situation(to_its_end, "entry", "a^b~c`d'e\"f\\g|h@i"),
    "all, and Enter": Situation(everything, "entry", "new name.txt\n", "new name.txt", "entered"),
    "other characters, and Enter": Situation(everything, "entry", "größer\n", "größer", "entered"),
    "nothing selected": Situation(nothing, "entry", " and more", BEGIN["entry"] + " and more"),
    "nothing selected, other characters": Situation(nothing, "entry", " ä日", BEGIN["entry"] + " ä日"),
    "password": Situation(everything, "password", "N3w-Secret!"),
    "password, other characters": Situation(everything, "password", "Gehéim"),
    "spin button": Situation(everything, "spin", "1234"),
    "combo box": Situation(everything, "combo", "third choice"),
    "combo box, other characters": Situation(everything, "combo", "größte"),
    "lines and tabs": Situation(everything, "text", LINES),
    "2,500 characters": Situation(everything, "text", LONG),
    "lines of other characters": Situation(everything, "text", f"{UNICODE}\n{UNICODE}"),
}
MINE, CHOSEN = "the person's own", "chosen before"


def selection(environ: Mapping[str, str], name: str, text: str | None = None) -> str:
    """What a selection holds, or is to hold."""
    command = ["xclip", "-selection", name, "-i" if text is not None else "-o"]
    if text is not None:
        subprocess.run(command, input=text, text=True, env={**environ}, stdout=subprocess.DEVNULL, check=True)
        wait_for(lambda: selection(environ, name) == text)  # xclip becomes the owner some time after it has returned
        return text
    return subprocess.run(command, capture_output=True, text=True, env={**environ}, timeout=10).stdout


def type_in(hand: Hand, fields: Fields, situation: Situation, environ: Mapping[str, str]) -> str:
    """What is wrong afterwards, by what the application and the selections hold; "" for nothing."""
    fields.reset()
    selection(environ, "clipboard", MINE)
    selection(environ, "primary", CHOSEN)
    time.sleep(_APART)
    situation.select(hand, fields, situation.field)
    hand.perform(TypeText(situation.text))
    wanted = situation.ends_as or situation.text
    got = fields.ends_as(situation.told or situation.field, wanted)
    if got != wanted:
        return f"{len(got)} characters: {got[:60]!r}"
    if (held := selection(environ, "clipboard")) != MINE:
        return f"the clipboard holds {held[:40]!r}"
    # What the application selects itself becomes PRIMARY, as when a person selects it; what we typed never does.
    if situation.text in (held := selection(environ, "primary")):
        return f"PRIMARY holds {held[:40]!r}"
    if situation.select is nothing and held != CHOSEN:
        return f"PRIMARY holds {held[:40]!r}"
    return ""


class Application:
    """A real application, started for one situation and ended with it; a context manager."""

    def __init__(self, environ: Mapping[str, str], *command: str, title: str) -> None:
        self.windows = X11Windows()
        self._program = subprocess.Popen(
            command, env={**environ}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            wait_for(lambda: self._is_in_front(title), 40)
        except AssertionError as error:
            there = [window.title for window in self.windows.windows()]
            raise AssertionError(
                f"no window {title!r} came to the front: there are {there}, in front is {self.windows.active()}, "
                f"and the program's status is {self._program.poll()}"
            ) from error
        time.sleep(1.0)

    def _is_in_front(self, title: str) -> bool:
        """Whether its window has the focus, which it is given where the window manager does not."""
        now = self.windows.active()
        if now is not None and title in now.title:
            return True
        for window in self.windows.windows():
            if title in window.title:
                self.windows.activate(window.id)
        time.sleep(0.2)
        return False

    def wait_for_title(self, title: str, seconds: float = 15.0) -> None:
        """Wait until one of the windows has this in its title, or for so long."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if any(title in window.title for window in self.windows.windows()):
                return
            time.sleep(0.05)

    def __enter__(self) -> "Application":
        return self

    def __exit__(self, *_: object) -> None:
        self.windows.close()
        self._program.kill()
        self._program.wait()


def soon(told: Callable[[], str], wanted: str, seconds: float = 5.0) -> str:
    """What something is in the end: as soon as it is as wanted, and a moment more."""
    deadline = time.monotonic() + seconds
    while told() != wanted and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    return told()


def rename_in(*manager: str) -> Callable[[Hand, Mapping[str, str], Path], str]:
    """Rename a file: its name without the ending is selected, in a dialog or in place."""

    def renamed(hand: Hand, environ: Mapping[str, str], folder: Path) -> str:
        place = folder / "files"
        place.mkdir()
        (place / "old name.txt").touch()
        with Application(environ, *manager, str(place), title="files"):
            hand.perform(PressKeys(("ctrl", "a")))
            time.sleep(_APART)  # Caja renames what its menus know to be selected, some 0.2 s later
            hand.perform(PressKeys(("f2",)))
            time.sleep(1.0)
            hand.perform(TypeText("new näme\n"))
            return soon(lambda: " ".join(one.name for one in place.iterdir()), "new näme.txt")

    return renamed


def go_in_thunar(hand: Hand, environ: Mapping[str, str], folder: Path) -> str:
    """Type a path over the one in the location bar."""
    place, other = folder / "here", folder / "elsewhere"
    place.mkdir()
    other.mkdir()
    with Application(environ, "thunar", str(place), title="here") as thunar:
        hand.perform(PressKeys(("ctrl", "l")))
        time.sleep(0.5)
        hand.perform(PressKeys(("ctrl", "a")))
        hand.perform(TypeText(f"{other}\n"))

        def shown() -> str:
            now = thunar.windows.active()
            return "" if now is None else now.title.split(" - ")[0]

        return soon(shown, "elsewhere")


def replace_in_mousepad(hand: Hand, environ: Mapping[str, str], folder: Path) -> str:
    """Replace a whole document, and save it."""
    file = folder / "old.txt"
    file.write_text("what stood there\n" * 5)
    with Application(environ, "mousepad", str(file), title="old.txt"):
        hand.perform(PressKeys(("ctrl", "a")))
        hand.perform(TypeText(LINES))
        hand.perform(PressKeys(("ctrl", "s")))
        return soon(lambda: file.read_text().rstrip("\n"), LINES)


def line_in(*terminal: str) -> Callable[[Hand, Mapping[str, str], Path], str]:
    """Type lines into a program in a terminal."""

    def typed(hand: Hand, environ: Mapping[str, str], folder: Path) -> str:
        file = folder / "typed"
        with Application(environ, *terminal, f"sh -c 'cat > {file}'", title="cat"):
            hand.perform(TypeText("short ASCII\n"))
            hand.perform(TypeText(UNICODE + "\n"))
            wanted = f"short ASCII\n{UNICODE}\n"
            return "right" if soon(file.read_text, wanted) == wanted else file.read_text()

    return typed


def lines_in_shell(*terminal: str) -> Callable[[Hand, Mapping[str, str], Path], str]:
    """Type several lines into a shell: nothing runs before Enter, and then everything."""

    def typed(hand: Hand, environ: Mapping[str, str], folder: Path) -> str:
        one, two = folder / "one", folder / "two"
        text = f"echo 1 > {one}\necho 2 > {two}"
        with Application(environ, *terminal, "bash --norc --noprofile -i", title="bash"):
            hand.perform(TypeText(text))
            time.sleep(1.0)
            early = [file.name for file in (one, two) if file.exists()]
            hand.perform(PressKeys(("enter",)))
            told = soon(lambda: " ".join(file.read_text().strip() for file in (one, two) if file.exists()), "1 2")
            return f"ran early: {early}" if early else told

    return typed


def count_in_galculator(hand: Hand, environ: Mapping[str, str], folder: Path) -> str:
    """Count: galculator fetches pasted text and drops it."""
    with Application(environ, "galculator", title="galculator"):
        hand.perform(TypeText("12*3\n"))
        time.sleep(0.3)
        hand.perform(PressKeys(("ctrl", "c")))
        return soon(lambda: selection(environ, "clipboard"), "36")


def address_in_chromium(hand: Hand, environ: Mapping[str, str], folder: Path) -> str:
    """Type addresses over the one in the address bar, the second one a beginning of the first."""
    asked: list[str] = []

    def serve(handler: Handler) -> None:
        if "page" in handler.path:
            asked.append(handler.path)
        handler.respond(f"<title>{len(asked)} served</title>".encode(), "text/html")

    server = HttpStub(serve)
    site = f"127.0.0.1:{server.server_port}"
    command = ["chromium", "--no-sandbox", "--no-first-run", "--disable-gpu", "--password-store=basic"]
    command += [f"--user-data-dir={folder}/{CHROMIUM}", f"http://{site}/"]
    try:
        with Application(environ, *command, title="0 served") as browser:
            for number, path in enumerate(("/page-of-ä?x=1", "/page"), 1):
                hand.perform(PressKeys(("ctrl", "l")))
                hand.perform(TypeText(f"{site}{path}\n"))
                browser.wait_for_title(f"{number} served")  # a page that comes takes the focus from the address bar
            return " ".join(asked)
    finally:
        server.close()


#: What is to come of each.
APPLICATIONS: dict[str, tuple[Callable[[Hand, Mapping[str, str], Path], str], str]] = {
    "Thunar, rename": (rename_in("thunar"), "new näme.txt"),
    "Caja, rename": (rename_in("caja", "--no-desktop"), "new näme.txt"),
    "Thunar, location": (go_in_thunar, "elsewhere"),
    "Mousepad, document": (replace_in_mousepad, LINES),
    "xterm, a line": (line_in("xterm", "-T", "cat", "-e"), "right"),
    "xterm, lines in a shell": (lines_in_shell("xterm", "-T", "bash", "-e"), "1 2"),
    "xfce4-terminal, a line": (line_in("xfce4-terminal", "-T", "cat", "-e"), "right"),
    "xfce4-terminal, lines in a shell": (lines_in_shell("xfce4-terminal", "-T", "bash", "-e"), "1 2"),
    "galculator": (count_in_galculator, "36"),
    "Chromium, address bar": (address_in_chromium, "/page-of-%C3%A4?x=1 /page"),
}
