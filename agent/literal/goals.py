"""What a part of an instruction comes to: the goals that the engine pursues one after the other."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agent.core.actions import Button


@dataclass(frozen=True, slots=True)
class Target:
    """Something on the screen as the person names it; what they did not say is empty."""

    name: str = ""  # its text or name; "" where only its kind is said ("the third icon")
    #: what kind of thing, as AT-SPI names roles: "push button", "check box", "switch", "radio button", "page tab",
    #: "combo box", "menu", "menu item", "icon", "link", "list item", "slider", "spin button", "entry", ...
    role: str = ""
    ordinal: int = 0  # 1 for the first, 2 for the second, -1 for the last; 0 where none is said
    inside: str = ""  # the window, application, page or tab it is said to be in ("X in Y", "the X tab of Y")
    under: str = ""  # the heading, group or label it is said to belong to ("X under Y")
    whole: str = ""  # everything as it was written, should that be one name ("Show images in menus")


@dataclass(frozen=True, slots=True)
class Open:
    """Start an application, open a settings panel, or open a file or folder by its name or path."""

    name: str
    kind: Literal["", "application", "file", "folder", "settings"] = ""  # as the person said
    inside: str = ""  # "open report.txt in the text editor", "open the display settings in X"


@dataclass(frozen=True, slots=True)
class Press:
    """Press a chord."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Click:
    """Click something that is shown."""

    target: Target
    button: Button = "left"
    count: int = 1  # 2 for a double click
    or_open: bool = False  # it may also be an application, panel or folder to open


@dataclass(frozen=True, slots=True)
class Toggle:
    """Have something switched on or off; nothing is touched where it is so already."""

    target: Target
    on: bool


@dataclass(frozen=True, slots=True)
class Choose:
    """Have a control show one of its choices: "set the theme to Adwaita-dark", "choose Daloa in Style"."""

    value: str
    control: Target


@dataclass(frozen=True, slots=True)
class SetValue:
    """Have a slider, spin button or number field hold a number, or more or less than now."""

    target: Target
    value: float | None = None  # None: only the direction is said
    unit: str = ""  # "%" or what was written after the number
    direction: Literal["", "up", "down"] = ""  # "make X bigger", "turn X down"; with a value: by so much


@dataclass(frozen=True, slots=True)
class Type:
    """Type text, where the focus is or into a named field."""

    text: str
    into: Target | None = None
    replace: bool = False  # what stands there is replaced ("set the name to X"), not added to


@dataclass(frozen=True, slots=True)
class Scroll:
    """Scroll; `to_end` until nothing moves any more."""

    direction: str
    notches: int = 5
    to_end: bool = False
    inside: str = ""


@dataclass(frozen=True, slots=True)
class Wait:
    """Let time pass."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Close:
    """Close the window in front, or the one of that name."""

    target: str = ""


@dataclass(frozen=True, slots=True)
class ArrangeWindow:
    """Bring a window to the front, or change how it is shown."""

    how: Literal["focus", "maximize", "unmaximize", "minimize", "fullscreen"]
    target: str = ""  # "" for the window in front


@dataclass(frozen=True, slots=True)
class MakeFolder:
    """Create a folder in the file manager."""

    name: str
    where: str = ""  # a folder's name; "" for the one that is open, or the home


@dataclass(frozen=True, slots=True)
class Rename:
    """Rename a file or folder in the file manager."""

    old: str
    new: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class Trash:
    """Move a file or folder to the trash in the file manager."""

    name: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Write a text in an editor, and save it where a name is given."""

    text: str
    save_as: str = ""  # a file name or path; "" for not saving
    editor: str = ""  # the application; "" for the text editor


@dataclass(frozen=True, slots=True)
class SaveAs:
    """Save what is open in front under a name; `name` "" for its own name."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class Calculate:
    """Have the calculator work something out, and say the result."""

    expression: str  # with the signs of a calculator: "12*12"
    calculator: str = ""  # the application; "" for the desktop's own


Goal: TypeAlias = (
    Open | Press | Click | Toggle | Choose | SetValue | Type | Scroll | Wait | Close | ArrangeWindow | MakeFolder
    | Rename | Trash | WriteFile | SaveAs | Calculate
)  # fmt: skip
