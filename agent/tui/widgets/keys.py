"""Shows keys and what they do, in as many words as fit; and the bindings that move in lists and texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.style import Style
from textual.binding import Binding, BindingType
from textual.color import Color, ColorParseError
from textual.containers import VerticalScroll
from textual.content import Content

#: The keys that move by one up and down, by a page up and down, and to both ends, in all lists and texts.
_MOTIONS = ("up,k", "down,j", "pageup", "pagedown", "home,g", "end,G")


def motions(*actions: tuple[str, str]) -> list[BindingType]:
    """Bindings for the keys that move, with an action and its name for each of `_MOTIONS`."""
    return [Binding(keys, *action, show=False) for keys, action in zip(_MOTIONS, actions, strict=True)]


#: How far pale text is blended from the foreground to the background.
_PALE = 0.3


@dataclass(frozen=True, slots=True)
class Key:
    """A key, and a description of what it does, in full and in one word."""

    key: str
    words: str
    word: str

    def shown(self, short: bool) -> Content:
        return Content.assemble(
            (f" {self.key} " if not short else self.key, "reverse"), f" {self.word if short else self.words}"
        )


def flowing(keys: Sequence[Key], width: int) -> list[Content]:
    """All keys on lines of this width: in full if that fits one line, else with a word each."""
    long = _on_lines([key.shown(short=False) for key in keys], width, "   ")
    return long if len(long) == 1 else _on_lines([key.shown(short=True) for key in keys], width, "  ")


def _on_lines(shown: Sequence[Content], width: int, gap: str) -> list[Content]:
    lines: list[Content] = []
    for one in shown:
        if lines and lines[-1].cell_length + len(gap) + one.cell_length <= width:
            lines[-1] = lines[-1].append(gap).append(one)
        else:
            lines.append(one)
    return lines


class TextScroll(VerticalScroll):
    """Scrolls its contents. Takes the focus, because a screen gives it to the first widget that can have it."""

    DEFAULT_CSS = "TextScroll { scrollbar-size-vertical: 1; }"
    BINDINGS: ClassVar = [
        *motions(
            ("scroll_up", "Line up"),
            ("scroll_down", "Line down"),
            ("page_up", "Page up"),
            ("page_down", "Page down"),
            ("scroll_home", "Beginning"),
            ("scroll_end", "End"),
        ),
        Binding("space", "page_down", "Page down", show=False),
    ]


def pale(variables: dict[str, str]) -> Style:
    """A style for less important text: between foreground and background, and still readable."""
    try:
        words, ground = Color.parse(variables["foreground"]), Color.parse(variables["surface"])
    except (KeyError, ColorParseError):
        return Style(dim=True)
    return Style(dim=True) if words.ansi is not None else Style(color=words.blend(ground, _PALE).rich_color)


def plain_colour(variables: dict[str, str], name: str) -> str | None:
    """A theme's colour as Rich takes it; None if the theme says `auto`."""
    try:
        return Color.parse(variables.get(name, "")).rich_color.name
    except ColorParseError:
        return None
