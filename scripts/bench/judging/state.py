"""The desktop's own state: settings, files, windows, clipboard, controls, each told by the desktop's own tools."""

import configparser
import hashlib
import json
import re
import subprocess
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

READER = Path(__file__).with_name("tree_reader.py")

_NOISE = tomllib.loads(Path(__file__).with_name("noise.toml").read_text())
_NOISY_SETTINGS = re.compile("|".join(_NOISE["settings"]))
_HIDDEN_THAT_COUNT = re.compile("|".join(_NOISE["hidden_files_that_count"]))
#: Settings (regular expressions) that desktops set along with others.
FOLLOWERS: dict[str, list[str]] = _NOISE["followers"]
_KDE_FILE = re.compile(r"^\.config/(k\w+rc|kdeglobals|kwinrc|katerc|kcminputrc|plasma\S*rc|dolphinrc|okularrc)$")

#: Channels that the list of channels leaves out until they have been written to the disk.
_UNLISTED = "accessibility keyboards pointers thunar displays xfce4-terminal xfce4-settings-manager xfce4-appfinder"
_SCRIPT = r"""
echo "=== xfconf"; for c in $( (xfconf-query -l 2>/dev/null | tail -n +2; echo $UNLISTED) | xargs -n1 | sort -u); do
echo "--- $c"; xfconf-query -c "$c" -lv 2>/dev/null; done
echo "=== dconf"; dconf dump / 2>/dev/null
echo "=== clipboard"; timeout 1 xclip -o -selection clipboard 2>/dev/null | head -c 20000; echo
echo "=== active"; timeout 2 xdotool getactivewindow 2>/dev/null
echo "=== windows"; for w in $(timeout 2 xprop -root _NET_CLIENT_LIST 2>/dev/null | grep -o '0x[0-9a-f]*'); do
echo "--- $w"
timeout 2 xprop -notype -id "$w" _NET_WM_NAME WM_NAME WM_CLASS _NET_WM_STATE _NET_WM_WINDOW_TYPE 2>/dev/null; done
echo "=== end"
"""


@dataclass
class State:
    """A desktop at one moment."""

    settings: dict[str, str] = field(default_factory=dict)  # "xfconf CHANNEL /P", "dconf /path", "kde FILE/GROUP/KEY"
    files: dict[str, str] = field(default_factory=dict)  # path in the home: "folder" or a digest
    windows: dict[str, str] = field(default_factory=dict)  # X id: "class|title|states"
    active: str = ""
    clipboard: str = ""
    controls: dict[str, str] = field(default_factory=dict)  # "app/role/name#n": what it holds
    nodes: list[dict[str, object]] = field(default_factory=list)


class Looker:
    """Reads the state of one desktop, by the environment of its programs."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)
        self.home = Path(environ["HOME"])

    def run(self, command: str | list[str], timeout: float = 20) -> str:
        """What a command prints on this desktop; "" where it fails."""
        try:
            done = subprocess.run(
                ["bash", "-c", command] if isinstance(command, str) else command,
                env=self._environ, cwd=self.home, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return ""
        return done.stdout.decode("utf-8", "replace")

    def state(self, watch: list[str]) -> State:
        """Everything, and the controls of the applications to watch."""
        parts = dict(
            re.findall(
                r"^=== (\w+)\n(.*?)(?=^=== )", self.run(f"UNLISTED='{_UNLISTED}'\n{_SCRIPT}"), re.DOTALL | re.MULTILINE
            )
        )
        state = State(clipboard=parts.get("clipboard", "").rstrip("\n"))
        state.settings |= _xfconf(parts.get("xfconf", "")) | _dconf(parts.get("dconf", "")) | self._kde()
        state.windows = _windows(parts.get("windows", ""))
        active = parts.get("active", "").strip()
        state.active = state.windows.get(f"{int(active):#x}", "") if active.isdigit() else ""
        state.files = self._files()
        if watch:
            state.nodes = self.nodes(watch)
            state.controls = _controls(state.nodes)
        return state

    def setting(self, state: State, name: str) -> str:
        """One setting as the tools tell it, defaults included; "" for none."""
        kind, _, rest = name.partition(" ")
        if kind == "gsettings":
            return self.run(["gsettings", "get", *rest.split(" ", 1)]).strip()
        return state.settings.get(name, "")

    def nodes(self, apps: list[str]) -> list[dict[str, object]]:
        """The controls of applications whose name fits, by the bench's own reader of accessibility trees."""
        lines = self.run(["/usr/bin/python3", str(READER), *apps], timeout=25).splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def _files(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for path in sorted(self.home.rglob("*")):
            name = path.relative_to(self.home).as_posix()
            if name.startswith((".cache/", ".config/chromium/", ".local/share/tracker", ".config/dconf")):
                continue
            try:
                if path.is_symlink():
                    found[name] = f"link to {path.readlink()}"
                elif path.is_dir():
                    found[name] = "folder"
                elif path.is_file():
                    found[name] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
            except OSError:
                continue
        return found

    def _kde(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for path in sorted((self.home / ".config").glob("*")):
            name = path.relative_to(self.home).as_posix()
            if not path.is_file() or not _KDE_FILE.match(name):
                continue
            parser = configparser.RawConfigParser(strict=False, interpolation=None, allow_no_value=True)
            parser.optionxform = str  # type: ignore[method-assign, assignment]
            try:
                parser.read_string("[]\n" + path.read_text(errors="replace"))
            except configparser.Error:
                continue
            for group in parser.sections():
                for key, value in parser.items(group):
                    found[f"kde {path.name}/{group}/{key}"] = value or ""
        return found


@dataclass(frozen=True)
class Difference:
    """One thing that is not as it was; `noise` for what programs write by themselves."""

    kind: str  # setting, file, window, clipboard, control
    what: str
    before: str | None
    after: str | None
    noise: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {self.what}: {_short(self.before)} -> {_short(self.after)}"


def differences(before: State, after: State) -> list[Difference]:
    """What differs, windows by what is shown of them."""
    found = [
        *_compared("setting", before.settings, after.settings, _noisy_setting),
        *_compared("file", before.files, after.files, _noisy_file),
        *_compared("control", before.controls, after.controls, lambda _: False),
    ]
    if before.clipboard != after.clipboard:
        found.append(Difference("clipboard", "", before.clipboard, after.clipboard))
    for window in before.windows.keys() | after.windows.keys():
        was, now = before.windows.get(window), after.windows.get(window)
        if was is None or now is None:
            found.append(Difference("window", window, was, now))
        elif was.split("|")[:2] != now.split("|")[:2]:
            found.append(Difference("window", window, was, now, noise=True))
    return found


def _compared(
    kind: str, before: dict[str, str], after: dict[str, str], noisy: Callable[[str], bool]
) -> list[Difference]:
    names = sorted(before.keys() | after.keys())
    return [
        Difference(
            kind, name, before.get(name), after.get(name), noisy(f"{name}: {before.get(name)} -> {after.get(name)}")
        )
        for name in names
        if before.get(name) != after.get(name)
    ]


def _noisy_setting(line: str) -> bool:
    return _NOISY_SETTINGS.match(line) is not None


def _noisy_file(line: str) -> bool:
    return line.startswith(".") and _HIDDEN_THAT_COUNT.match(line) is None


def _xfconf(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    channel = ""
    for line in text.splitlines():
        if line.startswith("--- "):
            channel = line[4:]
        elif line.startswith("/"):
            prop, _, value = line.partition(" ")
            found[f"xfconf {channel} {prop}"] = value.strip()
    return found


def _dconf(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    folder = ""
    for line in text.splitlines():
        if line.startswith("["):
            folder = line.strip("[]")
        elif "=" in line:
            key, _, value = line.partition("=")
            found[f"dconf /{folder}/{key}".replace("//", "/")] = value
    return found


def _windows(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.split("--- ")[1:]:
        window, _, rest = part.partition("\n")
        values = dict(re.findall(r"^([A-Z_]+)(?:\(\w+\))? = (.*)$", rest, re.MULTILINE))
        if "_DOCK" in values.get("_NET_WM_WINDOW_TYPE", "") or "_DESKTOP" in values.get("_NET_WM_WINDOW_TYPE", ""):
            continue
        title = (values.get("_NET_WM_NAME") or values.get("WM_NAME", "")).strip('"')
        classes = ".".join(re.findall(r'"([^"]*)"', values.get("WM_CLASS", "")))
        states = values.get("_NET_WM_STATE", "").replace("_NET_WM_STATE_", "").lower()
        found[window.strip()] = f"{classes}|{title}|{states}"
    return found


def _controls(nodes: list[dict[str, object]]) -> dict[str, str]:
    """What every control holds that can be set by a person."""
    found: dict[str, str] = {}
    seen: dict[str, int] = {}
    for node in nodes:
        held = held_by(node)
        if held is None:
            continue
        key = f"{node['app']}/{node['role']}/{node['name']}"
        seen[key] = seen.get(key, 0) + 1
        found[f"{key}#{seen[key]}"] = held
    return found


def held_by(node: dict[str, object]) -> str | None:
    """What a control holds; None for one that a person cannot set."""
    role = node["role"]
    if role in {"check box", "check menu item", "radio button", "radio menu item", "toggle button", "switch"}:
        return "checked" if node["checked"] else "not checked"
    if role in {"slider", "spin button"}:
        return str(node.get("value"))
    if role in {"text", "entry", "password text"}:
        return str(node.get("text", ""))
    return None


def _short(value: str | None) -> str:
    if value is None:
        return "none"
    return value if len(value) <= 80 else value[:77] + "..."
