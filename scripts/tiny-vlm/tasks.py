"""What the navigator is asked and how it should answer: sentences, a policy over what is in front, and chat texts."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from PIL import Image

from agent.families.base import Call, Family, PastStep, PromptRequest
from agent.families.mai_ui.family import written
from agent.families.registry import get_family

#: Pixels of a screenshot as sent: 150 image tokens. A row of the themes' list is then about a cell (32 pixels) high.
MOST_PIXELS = 160_000
MODES = ("dark", "light")
APPS = ("file manager", "terminal", "text editor")
#: A front window or page; "" is the desktop.
FRONTS = ("", "overview", "page", *APPS)
TARGETS = ("Appearance", "dark", "light")
ROW = {"dark": "Adwaita-dark", "light": "Adwaita"}

THOUGHTS = {
    "open settings": "Open the settings.",
    "click Appearance": "Click “Appearance”.",
    "click dark": "Click “Adwaita-dark”.",
    "click light": "Click “Adwaita”.",
    "dark is on": "The desktop is dark.",
    "light is on": "The desktop is light.",
    "settings is open": "The settings are open.",
    "absent": "There is no such setting here.",
    **{f"open {app}": f"Open the {app}." for app in APPS},
    **{f"{app} is open": f"The {app} is open." for app in APPS},
}
BEFORE = (
    *["open settings and "] * 4,
    "open the settings and ",
    "go to settings and ",
    "open settings, then ",
    "please ",
    "",
    "",
)
#: Sentences about the style: `{}` is "dark" or "light".
SWITCHES = (
    *[f"{verb} {what}"
      for verb in ("enable", "turn on", "switch to", "activate", "use", "change to", "select", "choose", "apply", "set")
      for what in ("{} mode", "{} mode", "the {} theme", "the {} style", "a {} theme", "the {} look", "{} colours")],
    *[f"{verb} {what} {{}}"
      for verb in ("make", "turn", "get")
      for what in ("the desktop", "everything", "my desktop", "the screen", "all windows", "the theme", "it")],
    *[f"set {what} to {{}}" for what in ("the theme", "the style", "the appearance", "the desktop")],
    "i want {} mode", "give me a {} desktop", "{} mode", "{} mode on", "i would like the {} theme", "go {}",
)  # fmt: skip
VERBS = ("open", "open", "start", "launch", "show", "bring up", "please open", "run")
NAMES = {
    "settings": ("settings", "settings", "the settings", "the settings manager", "the settings window"),
    "file manager": ("the file manager", "file manager", "a file manager", "the files"),
    "terminal": ("the terminal", "a terminal", "terminal", "a terminal window"),
    "text editor": ("the text editor", "text editor", "a text editor", "an editor"),
}
THINGS = (
    "night light",
    "bluetooth",
    "high contrast",
    "airplane mode",
    "the vpn",
    "wifi",
    "do not disturb",
    "screen sharing",
    "sticky keys",
    "location services",
    "automatic updates",
    "the firewall",
    "game mode",
    "battery saver",
    "the guest account",
    "remote login",
    "voice control",
    "the magnifier",
    "blue light filter",
    "mobile hotspot",
    "parental controls",
    "dictation",
    "zoom",
    "tablet mode",
)
SWITCH_ON = ("enable {}", "turn on {}", "activate {}", "switch on {}", "use {}", "turn off {}", "disable {}")


@dataclass(frozen=True)
class Task:
    """A sentence and what it means."""

    sentence: str
    kind: str  # "theme", "open", "absent"
    what: str


@dataclass(frozen=True)
class Screen:
    """A screenshot at its own size, what is in front, and the targets' places in its pixels."""

    image: Image.Image
    front: str
    dark: bool
    targets: dict[str, tuple[int, int]] = field(default_factory=dict)


def load_screens(folder: Path, sizes: Sequence[str] = ()) -> list[Screen]:
    """Read what `desktops.py` wrote; only these sizes, or all."""
    screens = []
    for file in sorted(folder.glob("*.jsonl")):
        if sizes and file.stem not in sizes:
            continue
        for line in file.read_text().splitlines():
            row = json.loads(line)
            front = row["front"]
            if front == "settings":
                front = "page" if row["page"] else "overview"
            wanted = {"overview": ("Appearance",), "page": MODES}.get(front, ())
            targets = {name: tuple(at) for name, at in row.get("targets", {}).items() if name in wanted}
            if set(targets) != set(wanted) and not (front == "page" and targets):
                continue
            screens.append(Screen(Image.open(folder / row["file"]).convert("RGB"), front, row["dark"], targets))
    return screens


def random_task(rng: Random) -> Task:
    """Draw a task."""
    draw = rng.random()
    if draw < 0.72:
        mode = rng.choice(MODES)
        sentence, task = rng.choice(BEFORE) + rng.choice(SWITCHES).format(mode), ("theme", mode)
    elif draw < 0.92:
        what = rng.choice(list(NAMES))
        sentence, task = f"{rng.choice(VERBS)} {rng.choice(NAMES[what])}", ("open", what)
    else:
        before = rng.choice(BEFORE)
        sentence, task = before + rng.choice(SWITCH_ON).format(rng.choice(THINGS)), ("absent", "")
    if rng.random() < 0.2:
        sentence = sentence[0].upper() + sentence[1:]
    return Task(sentence + rng.choice(("", "", "", ".", " please")), *task)


def decide(task: Task, screen: Screen) -> str:
    """Return the right decision: a key of THOUGHTS."""
    if task.kind == "open":
        front = "settings" if screen.front in ("overview", "page") else screen.front
        return f"{task.what} is open" if front == task.what else f"open {task.what}"
    if screen.front not in ("overview", "page"):
        return "open settings"
    if task.kind == "absent":
        return "absent"
    if screen.front == "overview":
        return "click Appearance"
    return f"{task.what} is on" if screen.dark == (task.what == "dark") else f"click {task.what}"


def arguments(decision: str, point: tuple[int, int] | None) -> dict[str, Any]:
    """Return the call's arguments, as MAI-UI writes them; `point` on its grid."""
    verb, _, rest = decision.partition(" ")
    if verb == "click" and point is not None:
        return {"action": "click", "coordinate": list(point)}
    if verb == "open":
        return {"action": "open", "text": rest}
    return {"action": "terminate", "status": "fail" if decision == "absent" else "success"}


def answer(decision: str, point: tuple[int, int] | None) -> str:
    """Return the whole answer."""
    return written(THOUGHTS[decision], Call("mobile_use", arguments(decision, point)))


def history(rng: Random, task: Task, screen: Screen, decision: str) -> list[tuple[str, tuple[int, int] | None]]:
    """Draw what may have been decided before."""

    def near(name: str) -> tuple[int, int]:
        x, y = screen.targets.get(name, (rng.randrange(60, 300), rng.randrange(100, 300)))
        return _clamped(x / screen.image.width * 999 + rng.gauss(0, 12)), _clamped(
            y / screen.image.height * 999 + rng.gauss(0, 9)
        )

    opening: tuple[str, tuple[int, int] | None] = ("open settings", None)
    if task.kind == "open":
        done = decision.endswith("is open")
        return [(f"open {task.what}", None)] if rng.random() < (0.85 if done else 0.12) else []
    if screen.front not in ("overview", "page"):
        return [] if rng.random() < 0.88 else [opening]
    past = [opening] if rng.random() < 0.85 else []
    if screen.front == "page":
        past.append(("click Appearance", near("Appearance")))
        if task.kind == "theme" and rng.random() < (0.75 if decision.endswith("is on") else 0.1):
            past.append((f"click {task.what}", near(task.what)))
    elif rng.random() < 0.08:
        past.append(("click Appearance", near("Appearance")))
    return past


def _clamped(value: float) -> int:
    return min(999, max(0, round(value)))


@cache
def family() -> Family:
    """Return MAI-UI's family, which takes a while to look up."""
    return get_family("mai-ui")


@cache
def system_text(apps: tuple[str, ...]) -> str:
    """Return MAI-UI's system text for a desktop with these applications."""
    return str(family().request(PromptRequest("x", (None,), apps=apps)).messages[0].parts[0].text)  # type: ignore[union-attr]


def chat(sentence: str, past: Sequence[tuple[str, tuple[int, int] | None]], apps: tuple[str, ...]) -> tuple[str, str]:
    """Return the chat before the image's tokens and after them, as the chat template writes it."""
    steps = tuple(
        PastStep(THOUGHTS[decision], (Call("mobile_use", arguments(decision, point)),), images=(None,))
        for decision, point in past
    )
    request = family().request(PromptRequest(sentence, (None,), steps=steps, apps=apps))
    whole = ""
    for message in request.messages:
        content = "".join(
            part.text if hasattr(part, "text") else "<|vision_start|><|image_pad|><|vision_end|>"
            for part in message.parts
        )
        whole += f"<|im_start|>{message.role}\n{content}<|im_end|>\n"
    before, _, after = (whole + "<|im_start|>assistant\n").partition("<|image_pad|>")
    return before, after


def tokens(apps: tuple[str, ...]) -> list[str]:
    """Return the texts that are single tokens besides those of the grounding model."""
    system = system_text(apps)
    head, _, rest = system.partition("\n\n## Applications\n")
    notes = rest[rest.index("\n\n## Note") :]
    words: dict[str, None] = {}
    for texts in (BEFORE, SWITCHES, VERBS, *NAMES.values(), SWITCH_ON, MODES):
        for word in " ".join(texts).replace("{}", "").replace(",", "").split():
            words |= dict.fromkeys((word, word.capitalize()))
    shape = json.dumps({"name": "mobile_use", "arguments": {"action": ""}}, separators=(",", ":"))[:-3]
    frames = ["<thinking>\n", f"\n</thinking>\n<tool_call>\n{shape}", 'click","coordinate":[', "]}}\n</tool_call>",
              'open","text":"', '"}}\n</tool_call>', 'terminate","status":"', "success", "fail"]  # fmt: skip
    listed = "\n\n## Applications\nInstalled on this machine: "
    return [
        head,
        notes,
        listed,
        ", ".join(apps),
        *THOUGHTS.values(),
        *frames,
        *[w for w in words if len(w) > 2],
        *[a for a in apps if len(a) > 3],
    ]
