"""Where a control is, as the installed settings dialogs describe their own windows.

GTK programs carry descriptions of their windows in their executables: GtkBuilder's XML, with the labels and the tabs
around them. They are read once, when a control is not on the screen and in no table. Compressed ones are not found.
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TypeAlias
from xml.etree import ElementTree

from agent.desktop.apps.catalogue import App
from agent.desktop.apps.linux import installed_apps
from agent.literal.vocabulary.lexicon import either, is_risky, letters_of
from agent.literal.vocabulary.places import Desktop, Place
from agent.literal.vocabulary.translations import bare, shown
from foundation.configs import load_config

_DESCRIPTION = re.compile(rb"<interface.*?</interface>", re.DOTALL)
#: Bytes. A larger program is not read; GNOME's Settings have 3 MB.
_MOST_BYTES = 40_000_000
#: `XDG_CURRENT_DESKTOP` of each desktop, and of all together.
_CURRENT = {"xfce": "XFCE", "gnome": "GNOME", "kde": "KDE", "cinnamon": "X-Cinnamon", "mate": "MATE"}
_ANY = ":".join(_CURRENT.values())

#: The labels of a window, as `bare` leaves them, with the tabs that lead to each place that has it.
_Labels: TypeAlias = Mapping[str, set[tuple[str, ...]]]


def described_places(label: str, desktop: Desktop) -> list[Place]:
    """Return the settings dialogs and pages that have this English label, with the tabs that lead to it."""
    pages = {page.get("file"): page for page in load_config(f"places/{desktop}.toml")["pages"].values()}
    found = []
    for app, panel, labels in _dialogs(_CURRENT[desktop]):
        for tabs in sorted(labels.get(bare(label), ())):
            page = pages.get(app.id) or {"app": app.name, "path": (app.name,) if panel else ()}
            path = (*page.get("path", ()), *tabs)
            found.append(Place("", True, page["app"], app.id, page["app"], path, (), ()))
    return found


def quote_labels(text: str) -> str:
    """Put into quotation marks what installed settings dialogs have as a label, if it contains words of the grammar."""
    labels = {label for _, _, labels in _dialogs(_ANY) for label in labels if " " in label and is_risky(label)}
    return re.sub(rf"(?i)(?<![\w“\"']){either(labels)}(?![\w”\"'])", r"“\g<0>”", text) if labels else text


@cache
def _dialogs(current: str) -> list[tuple[App, str, _Labels]]:
    """Return the installed settings dialogs, with the panel that they open ("" for their window) and its labels."""
    found = []
    for app in installed_apps({**os.environ, "XDG_CURRENT_DESKTOP": current}):
        if "Settings" not in app.categories:
            continue
        windows = _windows(shutil.which(app.program) or "")
        # A program with several panels names one by its argument: "gnome-control-center mouse" is `CcMousePanel`.
        panel = next((word for word in app.command[1:] if not word.startswith("-")), "")
        labels = windows.get(f"cc{letters_of(panel)}panel") if panel else max(windows.values(), key=len, default=None)
        if labels:
            found.append((app, panel, labels))
    return found


@cache
def _windows(program: str) -> Mapping[str, _Labels]:
    """Return the labels of each window that a program describes, by the letters of its class or identifier."""
    found: dict[str, _Labels] = {}
    try:
        data = Path(program).read_bytes() if program and Path(program).stat().st_size <= _MOST_BYTES else b""
    except OSError:  # it may be started and not read
        return found
    for description in _DESCRIPTION.findall(data):
        try:
            root = ElementTree.fromstring(description)  # noqa: S314 -- of an installed program, as trusted as itself
        except ElementTree.ParseError:
            continue
        for window in (*root.findall("template"), *root.findall("object")):
            name = window.get("class" if window.tag == "template" else "id", "")
            labels = dict[str, set[tuple[str, ...]]]()
            for label, tabs in _labels(window, ()):
                labels.setdefault(bare(label), set()).add(tabs)
            found[letters_of(name)] = labels
    return found


def _labels(widget: ElementTree.Element, tabs: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the labels in a widget, with the tabs that lead to them. A tab's label follows its page."""
    for one in widget.findall("property"):
        if one.get("name") in ("label", "title") and one.text:
            yield one.text, tabs
    pages = list[ElementTree.Element]()
    for child in widget.findall("child"):
        inner = child.find("object")
        if inner is None:
            continue
        if child.get("type") == "tab" and pages:
            name = next((shown(label) for label, _ in _labels(inner, ())), "")
            yield from _labels(pages.pop(), (*tabs, name) if name else tabs)
        elif widget.get("class") == "GtkNotebook":
            pages.append(inner)
        else:
            yield from _labels(inner, tabs)
    for page in pages:
        yield from _labels(page, tabs)
