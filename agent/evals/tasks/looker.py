"""Reads the state of a sandbox by the desktop's own tools, run inside it.

It shares no code with the agent's receipts and accessibility client, so that an error there cannot hide itself.
"""

import configparser
import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agent.evals.tasks.judge import State
from agent.evals.tasks.task import EvalTask
from agent.sandbox.desktop import Sandbox
from foundation.errors import EnvironmentLacksError

_READER = Path(__file__).with_name("tree_reader.py")
_KDE_FILE = re.compile(r"(k\w+rc|kdeglobals|kwinrc|katerc|kcminputrc|plasma\S*rc|dolphinrc|okularrc)")
#: Beginnings of paths that are never compared: caches, and a database that changes by itself.
_NOT_READ = (".cache/", ".config/chromium/", ".local/share/tracker", ".config/dconf")
#: Characters of a named file that are kept.
_LONGEST_TEXT = 100_000
#: Roles of controls that a person can check.
_CHECKED = {"check box", "check menu item", "radio button", "radio menu item", "toggle button", "switch"}
#: Channels that the list of channels leaves out until they have been written to the disk.
_UNLISTED = "accessibility keyboards pointers thunar displays xfce4-terminal xfce4-settings-manager xfce4-appfinder"
_SCRIPT = rf"""
echo "=== xfconf"; for c in $( (xfconf-query -l 2>/dev/null | tail -n +2; echo {_UNLISTED}) | xargs -n1 | sort -u); do
echo "--- $c"; xfconf-query -c "$c" -lv 2>/dev/null; done
echo "=== dconf"; dconf dump / 2>/dev/null
echo "=== clipboard"; timeout 1 xclip -o -selection clipboard 2>/dev/null | head -c 20000; echo
echo "=== active"; timeout 2 xdotool getactivewindow 2>/dev/null
echo "=== windows"; for w in $(timeout 2 xprop -root _NET_CLIENT_LIST 2>/dev/null | grep -o '0x[0-9a-f]*'); do
echo "--- $w"
timeout 2 xprop -notype -id "$w" _NET_WM_NAME WM_NAME WM_CLASS _NET_WM_STATE _NET_WM_WINDOW_TYPE 2>/dev/null; done
echo "=== end"
"""


#: The programs that read the state or do what tasks say, and the packages that hold them.
_TOOLS = {
    "xprop": "x11-utils", "wmctrl": "wmctrl", "xdotool": "xdotool", "xclip": "xclip", "dconf": "dconf-cli",
    "gsettings": "libglib2.0-bin",
}  # fmt: skip


def check_tools() -> None:
    """Raise EnvironmentLacksError if a program for reading the state is missing."""
    if lost := [package for program, package in _TOOLS.items() if shutil.which(program) is None]:
        raise EnvironmentLacksError("The state of desktops cannot be read.", f"Install: {', '.join(lost)}.")


class StateReader:
    """Reads one sandbox for one task."""

    def __init__(self, sandbox: Sandbox, task: EvalTask) -> None:
        self._sandbox = sandbox
        self._task = task
        self.home = Path(sandbox.environ["HOME"])

    def run(self, *command: str, timeout: float = 20) -> str:
        """Return what a command prints on this desktop; "" if it takes too long. One word is a line for the shell."""
        words = ["bash", "-c", command[0]] if len(command) == 1 else command
        try:
            return self._sandbox.run(*words, timeout=timeout).stdout
        except subprocess.TimeoutExpired:
            return ""

    def prepare(self, command: str) -> None:
        """Run a line of the shell that must succeed. Raises EnvironmentLacksError."""
        try:
            done = self._sandbox.run("bash", "-c", command)
            if done.returncode == 0:
                return
            why = f"status {done.returncode}; {done.stderr.strip()[-300:]}"
        except subprocess.TimeoutExpired as error:
            why = f"no end within {error.timeout:g} s"
        raise EnvironmentLacksError(
            f"The task {self._task.id!r} cannot be prepared: {command!r} gave {why}.", "Correct its `setup`."
        )

    def state(self) -> State:
        """Return all that the task can be judged by. Raises EnvironmentLacksError: it cannot be read."""
        text = self.run(_SCRIPT)
        if "=== end" not in text:
            raise EnvironmentLacksError(
                "The state of the desktop cannot be read: its own tools do not answer.", "What is hung there?"
            )
        parts = dict(re.findall(r"^=== (\w+)\n(.*?)(?=^=== )", text, re.DOTALL | re.MULTILINE))
        windows, active = _windows(parts.get("windows", "")), parts.get("active", "").strip()
        task = self._task
        watched = [] if not task.watch else self._nodes(task.watch)
        apps = sorted({str(wanted.get("app", "")) for wanted in task.expect.tree})
        return State(
            settings=_xfconf(parts.get("xfconf", "")) | _dconf(parts.get("dconf", "")) | self._kde(),
            asked={
                name: self.run("gsettings", "get", *name.split(" ", 2)[1:]).strip()
                for name in task.expect.settings
                if name.startswith("gsettings ")
            },
            files=dict(self._files()),
            texts={path: self._text(path) for path in task.expect.paths},
            outputs={command: self.run(command) for command in task.expect.outputs},
            windows=windows,
            active=windows.get(f"{int(active):#x}", "") if active.isdigit() else "",
            clipboard=parts.get("clipboard", "").rstrip("\n"),
            controls=_controls(watched),
            nodes=self._nodes(apps) if apps else [],
        )

    def windows(self) -> set[str]:
        """Return the ids of the windows."""
        return set(re.findall("0x[0-9a-f]+", self.run("xprop", "-root", "_NET_CLIENT_LIST")))

    def _nodes(self, apps: Sequence[str]) -> list[dict[str, Any]]:
        """Return the controls of applications whose name fits."""
        code = _READER.read_text(encoding="utf-8")  # the file itself may lie where the sandbox cannot see it
        lines = self.run("/usr/bin/python3", "-c", code, *apps, timeout=25).splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def _text(self, name: str) -> str | None:
        path = self.home / name
        if not path.resolve().is_relative_to(self.home.resolve()):  # a link out of the sandbox
            return None
        if path.is_dir():
            return ""
        try:
            return path.read_text(encoding="utf-8", errors="replace")[:_LONGEST_TEXT]
        except OSError:
            return None

    def _files(self) -> Iterator[tuple[str, str]]:
        for path in sorted(self.home.rglob("*")):
            name = path.relative_to(self.home).as_posix().encode("utf-8", "replace").decode()
            if name.startswith(_NOT_READ):
                continue
            try:
                if path.is_symlink():
                    yield name, f"link to {path.readlink()}"
                elif path.is_dir():
                    yield name, "folder"
                elif path.is_file():
                    yield name, hashlib.sha256(path.read_bytes()).hexdigest()[:16]
            except OSError:  # the file was removed meanwhile
                continue

    def _kde(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for path in sorted((self.home / ".config").glob("*")):
            if not path.is_file() or not _KDE_FILE.fullmatch(path.name):
                continue
            parser = configparser.RawConfigParser(strict=False, interpolation=None, allow_no_value=True)
            parser.optionxform = str  # type: ignore[method-assign, assignment]  # keys are told apart by case
            try:
                parser.read_string("[]\n" + path.read_text(encoding="utf-8", errors="replace"))
            except (OSError, configparser.Error):
                continue
            for group in parser.sections():
                found |= {f"kde {path.name}/{group}/{key}": value or "" for key, value in parser.items(group)}
        return found


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
        kind = values.get("_NET_WM_WINDOW_TYPE", "")
        if "_DOCK" in kind or "_DESKTOP" in kind:
            continue
        title = (values.get("_NET_WM_NAME") or values.get("WM_NAME", "")).strip('"')
        classes = ".".join(re.findall(r'"([^"]*)"', values.get("WM_CLASS", "")))
        states = values.get("_NET_WM_STATE", "").replace("_NET_WM_STATE_", "").lower()
        found[window.strip()] = f"{classes}|{title}|{states}"
    return found


def _controls(nodes: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return the value of every control that a person can set."""
    found: dict[str, str] = {}
    seen: dict[str, int] = {}
    for node in nodes:
        held = _held_by(node)
        if held is None:
            continue
        key = f"{node['app']}/{node['role']}/{node['name']}"
        seen[key] = seen.get(key, 0) + 1
        found[f"{key}#{seen[key]}"] = held
    return found


def _held_by(node: dict[str, Any]) -> str | None:
    """Return what a control holds; None if a person cannot set it."""
    role = node["role"]
    if role in _CHECKED:
        return "checked" if node["checked"] else "not checked"
    if role in {"slider", "spin button"}:
        return str(node.get("value"))
    if role in {"text", "entry", "password text"}:
        return str(node.get("text", ""))
    return None
