"""The goals of an instruction, which the engine pursues one after the other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeAlias

from agent.core.actions import Button


class Copied(str):
    """Marks a field that a model must copy from the instruction; the value describes it in the JSON schema."""

    __slots__ = ()

    def __get_pydantic_json_schema__(self, schema: Any, described: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """Return the schema of a field, with the description."""
        return described(schema) | {"description": str(self)}


SAID = Copied("as it stands in the instruction")
QUOTED = Copied("as it stands in the instruction in quotation marks")
Said: TypeAlias = Annotated[str, SAID]
Quoted: TypeAlias = Annotated[str, QUOTED]

#: A place: the desktop itself, with the icons on it. "desktop" alone may name an application.
BACKDROP = "the desktop"
#: A place: the panels and docks, which are in no window. "Panel" alone may name their settings.
PANELS = "the panel"


@dataclass(frozen=True, slots=True)
class Target:
    """A thing on the screen as the person describes it. A property that they did not mention is empty."""

    name: str = ""  # its text or name; "" if only its kind is given ("the third icon")
    #: AT-SPI role: "push button", "check box", "switch", "radio button", "page tab", "combo box", "menu",
    #: "menu item", "icon", "link", "list item", "slider", "spin button", "entry", ...
    role: str = ""
    ordinal: int = 0  # 1 for the first, 2 for the second, -1 for the last; 0 for none
    inside: str = ""  # the window, application, page or tab around it ("X in Y", "the X tab of Y")
    under: str = ""  # its heading, group or label ("X under Y")
    whole: str = ""  # the full text, in case all of it is one name ("Show images in menus")
    here: bool = False  # only in the window that was opened before: "X in the Mousepad preferences"
    picture: str = ""  # in a recipe: its picture, if it has no name (`agent.screen.picture_search`)
    beside: bool = False  # only in the row of what `under` names ("X next to Y")


@dataclass(frozen=True, slots=True)
class Open:
    """Start an application, open a settings panel, a file or folder by its name or path, or a page by its address."""

    name: str
    kind: Literal["", "application", "file", "folder", "page", "settings"] = ""  # "" if the person gave none
    inside: str = ""  # "open report.txt in the text editor", "open the display settings in X"
    anew: bool = False  # a new window is wanted, where one is open already


@dataclass(frozen=True, slots=True)
class Press:
    """Press a key combination."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Click:
    """Click something on the screen."""

    target: Target
    button: Button = "left"
    count: int = 1  # 2 for a double click
    or_open: bool = False  # it may also be an application, panel or folder to open


@dataclass(frozen=True, slots=True)
class Toggle:
    """Switch something on or off; no click if it is in that state already."""

    target: Target
    on: bool


@dataclass(frozen=True, slots=True)
class Choose:
    """Select one of a control's choices: "set the theme to Adwaita-dark", "choose Daloa in Style"."""

    value: str
    control: Target


@dataclass(frozen=True, slots=True)
class SetValue:
    """Set a slider, spin button or number field to a number, or change it up or down."""

    target: Target
    value: float | None = None  # None if only the direction is given
    unit: str = ""  # "%" or the word after the number
    direction: Literal["", "up", "down"] = ""  # "make X bigger", "turn X down"; with a value, change by that amount


@dataclass(frozen=True, slots=True)
class Type:
    """Type text into the focused element or a named field."""

    text: Quoted
    into: Target | None = None
    replace: bool = False  # replace the present text ("set the name to X") instead of adding to it
    empty: bool = False  # of a recipe: only into a field that is empty


@dataclass(frozen=True, slots=True)
class Scroll:
    """Scroll by some notches, or `to_end`."""

    direction: Literal["up", "down", "left", "right"]
    notches: int = 5
    to_end: bool = False
    inside: str = ""


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Close:
    """Close the front window, or the window of that name."""

    target: str = ""
    dialog: bool = False  # only if it is a dialog


@dataclass(frozen=True, slots=True)
class CloseOthers:
    """Close all windows but those of these names; without names, all but the front window."""

    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ArrangeWindow:
    """Bring a window to the front, or change its state."""

    how: Literal["focus", "maximize", "unmaximize", "minimize", "fullscreen", "show desktop"]
    target: str = ""  # "" for the front window


@dataclass(frozen=True, slots=True)
class MakeFolder:
    """Create a folder in the file manager."""

    name: Said
    where: str = ""  # a folder's name; "" for the open folder, or the home folder


@dataclass(frozen=True, slots=True)
class Rename:
    """Rename a file or folder in the file manager."""

    old: Said
    new: Said
    where: str = ""


@dataclass(frozen=True, slots=True)
class Trash:
    """Move a file or folder to the trash in the file manager."""

    name: Said
    where: str = ""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Move or copy a file or folder into another folder in the file manager."""

    name: Said
    to: str  # a folder's name or path
    where: str = ""
    copy: bool = False


@dataclass(frozen=True, slots=True)
class ReplaceText:
    """Replace a text in the document of the front window."""

    old: Quoted
    new: Quoted
    all: bool = False  # each occurrence; else there must be only one


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Write a text in an editor, and save it if a name is given."""

    text: Quoted
    save_as: Said = ""  # a file name or path; "" to leave it unsaved
    editor: str = ""  # the application; "" for the text editor


@dataclass(frozen=True, slots=True)
class SaveAs:
    """Save the document in the front window, under its own name if `name` is empty."""

    name: Said = ""


@dataclass(frozen=True, slots=True)
class Calculate:
    """Calculate an expression in the calculator, and report the result."""

    expression: str  # in a calculator's notation: "12*12"
    calculator: str = ""  # the application; "" for the desktop's default


@dataclass(frozen=True, slots=True)
class Expected:
    """A change that a recipe's steps make, as receipts report it."""

    kind: Literal["setting", "file"]
    what: str  # as `Change.what` names it
    becomes: str  # a setting's value; "written" or "gone" for a file


#: The window of a `Part` for things in no window: desktop icons missing from the tree.
DESKTOP = "desktop"


@dataclass
class Question:
    """Which thing a step of a recipe means now; a text model answers it between two steps."""

    number: int  # of the step
    words: str  # what the step does
    choices: Mapping[str, Target]  # the things that it may mean, by their names
    outcome: str = ""  # what came of it, as a clause


@dataclass(frozen=True, slots=True)
class Part:
    """One step of a recipe. Its target has exactly this name and role; `Target.inside` names its window."""

    goal: "Open | Press | Click | Toggle | Type | Scroll | Wait | Close"  # `Toggle` clicks only if the state differs
    window: str = ""  # the window for keys: a title, where "*" stands for any text, or an application; "" for the front
    near: tuple[str, ...] = ()  # texts around the target that tell it from others of its name; one must be there


@dataclass(frozen=True, slots=True)
class Repeat:
    """Do the steps of a recipe, and check the expected changes."""

    parts: tuple[Part, ...]
    expected: tuple[Expected, ...] = ()


#: What an instruction can mean.
Sayable: TypeAlias = (
    Open | Press | Click | Toggle | Choose | SetValue | Type | Scroll | Wait | Close | CloseOthers | ArrangeWindow
    | MakeFolder | Rename | Trash | Transfer | ReplaceText | WriteFile | SaveAs | Calculate
)  # fmt: skip
Goal: TypeAlias = Sayable | Repeat


def target_of(goal: Goal | None) -> Target | None:
    """Return the thing on the screen that a goal acts on; None if it names none."""
    match goal:
        case Click(target) | Toggle(target) | SetValue(target) | Choose(_, target) | Type(_, Target() as target):
            return target
    return None


def with_target(goal: Goal, target: Target) -> Goal:
    """Return a goal with another thing to act on."""
    match goal:
        case Choose():
            return replace(goal, control=target)
        case Type():
            return replace(goal, into=target)
        case Click() | Toggle() | SetValue():
            return replace(goal, target=target)
    return goal


@dataclass(frozen=True, slots=True)
class Reading:
    """What an instruction means."""

    goals: list[Goal]
    by: str = ""  # the model that read it; "" for the grammar
