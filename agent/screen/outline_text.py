"""Writes the outline of a screen as text: one line per element, with the number by which a model refers to it.

    window "Settings" (xfce4-settings-manager), active
    12 push button "Close" @ 703,790
    13 check box "Dark" (not checked) @ 120,340

Names come from whatever is on the screen: they are data, each on one line and without control characters.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.core.geometry import Grid, Region
from agent.screen.join import WORDS_ROLE
from agent.screen.outline import Element, Outline, element_words
from foundation.foreign_text import on_one_line

#: Longest text of an outline, in characters: about 5,000 tokens, half of a small model's context.
MOST_CHARS = 12_000
#: Longest value of an element, and longest title of a window, in characters.
_LONGEST = 80
_TOLD = ("focused", "editable", "collapsed", "indeterminate")
_DESKTOP = "the desktop"


@dataclass(frozen=True, slots=True)
class OutlineText:
    """An outline as text, and the elements listed in it."""

    text: str
    elements: tuple[Element, ...]


def write_outline(outline: Outline, grid: Grid, most_chars: int = MOST_CHARS) -> OutlineText:
    """Write the visible elements under their windows, top-most first, with centres on the grid.

    If there is not enough room, plain words are left out first, then elements of the windows at the back. A line states
    how many.
    """
    groups = _grouped(outline)
    kept = _within([one for _, members in groups for one in members], outline, grid, most_chars)
    lines: list[str] = []
    listed: list[Element] = []
    left_out = 0
    for title, members in groups:
        shown = [one for one in members if one.id in kept]
        left_out += len(members) - len(shown)
        if shown:
            lines += [title, *(_line(one, outline, grid) for one in shown)]
            listed += shown
    if left_out:
        lines.append(f"({left_out} more elements are not listed)")
    return OutlineText("\n".join(lines) or "(no element is known)", tuple(listed))


def _grouped(outline: Outline) -> list[tuple[str, list[Element]]]:
    """Group the visible elements by window, top-most first; each group with its title."""
    seen = _without_parts([one for one in outline.elements if is_seen(one, outline)])
    order = [(window.title, window.app) for window in outline.windows]
    keys = [key for key in dict.fromkeys((one.window, one.app) for one in seen) if key not in order]
    active = {(window.title, window.app) for window in outline.windows if window.active}
    groups: list[tuple[str, list[Element]]] = []
    for key in dict.fromkeys([*order, *keys]):
        members = [one for one in seen if (one.window, one.app) == key]
        title, app = (_plain(word) for word in key)
        named = f'window "{title}"' + (f" ({app})" if app and app != title else "") if title or app else _DESKTOP
        if members or key in order:
            groups.append((named + (", active" if key in active else ""), members))
    return [group for group in groups if group[1]]


def is_seen(element: Element, outline: Outline) -> bool:
    """Whether an element is on the screen and has a name, label or value, or is trusted. Only these are listed."""
    if "offscreen" in element.states or not (element.name or element.label or element.value or element.trusted):
        return False
    x, y = element.box.left - outline.origin[0], element.box.top - outline.origin[1]
    return -element.box.width < x < outline.size.width and -element.box.height < y < outline.size.height


def _without_parts(elements: Sequence[Element]) -> list[Element]:
    """Leave out words that are part of a longer caption in the list."""
    words = [one for one in elements if one.source == "words"]
    return [
        one
        for one in elements
        if one.source != "words"
        or not any(
            one is not longer and one.name != longer.name and one.name in longer.name and _inside(one.box, longer.box)
            for longer in words
        )
    ]


def _inside(box: Region, around: Region) -> bool:
    return (
        around.left <= box.left + 2
        and around.top <= box.top + 2
        and box.right <= around.right + 2
        and box.bottom <= around.bottom + 2
    )


def _within(elements: Sequence[Element], outline: Outline, grid: Grid, most_chars: int) -> set[int]:
    """Return the ids of the elements that fit: controls before plain words, front before back."""
    kept: set[int] = set()
    room = most_chars
    for element in sorted(elements, key=lambda one: one.role == WORDS_ROLE):
        room -= len(_line(element, outline, grid)) + 1
        if room < 0:
            break
        kept.add(element.id)
    return kept


def _line(element: Element, outline: Outline, grid: Grid) -> str:
    words = element_words(element.role, _plain(element.name or element.label), element.states)
    words = words.replace("“", '"').replace("”", '"')
    told_value = element.value and "password" not in element.role
    value = f' = "{_plain(element.value or "")}"' if told_value else ""
    shown_states = [state for state in _TOLD if state in element.states]
    centre = outline.centre(element, grid)
    states = f" [{', '.join(shown_states)}]" if shown_states else ""
    return f"{element.id} {words}{value}{states} @ {centre.x:.0f},{centre.y:.0f}"


def _plain(text: str) -> str:
    """Return the text on one line, shortened, with double quotes replaced so that they cannot end ours."""
    line = on_one_line(text).replace('"', "'")
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
