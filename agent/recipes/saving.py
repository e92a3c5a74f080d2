"""Makes a recipe of a recorded run: its actions without the waits, with names in place of coordinates.

What was typed, and words of names, can become parameters. A step whose target has no name cannot be found again, so it
is an error. Secrets are masked in records: a masked text becomes a parameter that is asked for each time.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.core.actions import Action, Click, Finish, OpenApp, PressKeys, Scroll, TypeText, Wait
from agent.core.geometry import DesktopPoint, Region, Size
from agent.core.roles import role_group
from agent.literal.goals import DESKTOP
from agent.literal.vocabulary.lexicon import letters_of
from agent.recipes.recipe import PARAMETER, VERSION, Recipe
from agent.record.read import Bundle
from agent.record.records import BoxRecord
from agent.record.redactor import MASK, Redactor
from agent.record.report.pictures import load
from agent.record.step_record import ActionRecord, DescribedRecord, ElementRecord, StepRecord
from agent.screen.picture_search import cut_out
from foundation.errors import UsageError

if TYPE_CHECKING:
    from PIL.Image import Image

_CONTAINERS = role_group("containers")
_SWITCHES = frozenset({"check box", "switch", "toggle switch", "check menu item"})
#: Roles that take text, as hit tests report them.
_FIELDS = frozenset(
    {"text", "entry", "password text", "terminal", "document text", "paragraph", "editbar", "spin button"}
)
#: Roles whose own name is often their value.
_VALUES = role_group("values")
#: Roles whose parts do different things when they are clicked.
_PARTED = frozenset({"slider", "spin button", "scroll bar", "dial"})
#: Roles of controls that act when they are clicked, even if they lie over a field.
_PRESSED = role_group("what is pressed") | role_group("menu items") | role_group("what is on or off")
#: Minimum height of a multi-line field, and maximum width of a caret, in desktop units.
_LINES, _CARET = 60, 4
#: Minimum letters of OCR words that may name a control.
_LETTERS = 3
#: Maximum changes that a recipe expects. Receipts also list side effects, such as a window's remembered position.
_MOST_EXPECTED = 12
#: The application's part of a title, after its last dash or before its first one; the rest is a document's name.
_PARTS = (
    re.compile(r".+ (?P<dash>[-–—]) (?P<name>.+)", re.DOTALL),
    re.compile(r"(?P<name>.+?) (?P<dash>[-–—])( .*)?", re.DOTALL),
)
_PATTERNS = ("* {dash} {name}", "{name} {dash}*")
#: Fields of a recipe that never hold the person's words.
_FIXED = frozenset({"role", "picture", "button", "keys", "to", "direction", "setting"})
_Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Deed:
    """One action that the run carried out."""

    number: int  # of its step in the run
    action: Action[DesktopPoint]
    record: ActionRecord
    shot: "Callable[[], tuple[Image, Size] | None]"  # the screen before it, and its size in desktop units

    def picture(self, *, once: bool) -> str:
        """Return a picture of the clicked control; "" if there is none. With `once`, also "" if it is there twice."""
        shot, element = self.shot(), self.element
        if shot is None or not isinstance(self.action, Click) or self.action.point is None:
            return ""
        if element is None or element.box is None or element.role in _CONTAINERS:
            return cut_out(*shot, self.action.point, None, once=once)
        return cut_out(*shot, element.box.region.middle, element.box.region, once=once)

    @property
    def element(self) -> ElementRecord | None:
        """The target as the outline describes it, or as the hit test does if that names another element."""
        hit, described = next(reversed(self.record.elements), None), self.record.described
        if hit is None or hit.role in _CONTAINERS - _FIELDS or not hit.name:
            return described or hit
        return described if described is not None and described.name == hit.name else hit

    @property
    def window(self) -> str:
        """Its window, as recipes name it."""
        element, aim = self.element, self.record.aim
        if isinstance(element, DescribedRecord) and element.source == "words" and not element.window:
            return DESKTOP
        app = self.record.described.app if element is self.record.described and self.record.described else aim.app
        return window_name((element.window if element is not None else "") or aim.window, app or aim.app)


def recipe_of(bundle: Bundle, parameters: Mapping[str, str]) -> Recipe:
    """Return the recipe of a recorded run. `parameters`: texts that become parameters, by the parameters' names.

    Raises UsageError: it did not end well, cannot be done again, or a parameter's text was not typed.
    """
    run = bundle.run
    if run.dry_run:
        raise UsageError("That was a dry run: it did nothing that could be done again.", "Save a run that was done.")
    if bundle.outcome not in ("done", "unverified"):
        raise UsageError(f"That run was not done (it is {bundle.outcome}).", "Save a run that reached its end.")
    if run.recorded is not None and len(bundle.steps) != run.recorded:
        raise UsageError(
            f"The record of that run is damaged: {len(bundle.steps)} of its {run.recorded} steps can be read.",
            "Do the task again, and save that run.",
        )
    joined = _joined(_kept(list(_deeds(bundle))))
    steps = [_step(deeds, after) for deeds, after in zip(joined, [*joined[1:], []], strict=False)]
    if not steps:
        raise UsageError("That run did nothing on the desktop.", "There is nothing to do again.")
    ends = [record.final_action for step in bundle.steps for record in step.actions]
    if already := [part for end in ends if isinstance(end, Finish) for part in end.already]:
        raise UsageError(
            f"The recipe would not {' and '.join(already)}: it was set already, so the run did nothing for it.",
            "Change it back, do the task again, and save that run.",
        )
    data = {"instruction": run.instruction, "steps": steps, "expect": _expected(bundle)}
    data = _with_parameters(Redactor().data(data), parameters)
    return Recipe.model_validate({"version": VERSION, **data})


def window_name(title: str, app: str) -> str:
    """Return how a recipe names a window: its title without a document's name, or its application if it has none."""
    application = letters_of(app)
    for parts, pattern in zip(_PARTS, _PATTERNS, strict=True):
        found = parts.fullmatch(title)
        letters = letters_of(found["name"]) if found else ""
        if found and letters and application and (letters in application or application in letters):
            return pattern.format(**found.groupdict())
    return title.removeprefix("*") or app


def _deeds(bundle: Bundle) -> Iterable[_Deed]:
    """Yield the run's actions in order. Raises UsageError if no recipe can express one."""
    for step in bundle.steps:
        for record in step.actions:
            action = record.final_action
            if not record.executed or record.error is not None or action is None or isinstance(action, Wait):
                continue
            deed = _Deed(step.step or 0, action, record, partial(_shot, bundle.path, step))
            odd = isinstance(action, Click) and (action.held or action.point is None or _is_odd(action, deed.element))
            if odd or not isinstance(action, Click | OpenApp | PressKeys | Scroll | TypeText):
                raise _cannot(deed, "is no step of a recipe")
            yield deed


def _is_odd(click: Click[DesktopPoint], element: ElementRecord | None) -> bool:
    """Return whether no step can express this click: a triple click may only select a single-line text."""
    has_lines = element is not None and element.box is not None and element.box.height >= _LINES
    one_line = element is not None and element.role in _FIELDS and not has_lines
    return click.count > 3 or (click.count == 3 and not one_line)


def _shot(folder: Path, step: StepRecord) -> "tuple[Image, Size] | None":
    """Return a step's screenshot, and the screen's size in desktop units; None unless the screen begins at 0,0."""
    view = step.viewport
    if step.image is None or view is None or (view.left, view.top) != (0, 0):
        return None
    image = load(folder / step.image.file)
    return None if image is None else (image, Size(view.width, view.height))


def _cannot(deed: _Deed, why: str) -> UsageError:
    return UsageError(
        f"Step {deed.number} of the run cannot be saved: it {why} ({deed.record.words}).",
        "Do the task another way, for example with keys or named controls.",
    )


def _kept(deeds: list[_Deed]) -> list[_Deed]:
    """Leave out scrolling to something that is clicked: a recipe scrolls to its targets by itself."""
    clicks = [at for at, deed in enumerate(deeds) if isinstance(deed.action, Click)]
    return [
        deed for at, deed in enumerate(deeds) if not isinstance(deed.action, Scroll) or at > max(clicks, default=-1)
    ]


def _joined(deeds: list[_Deed]) -> list[list[_Deed]]:
    """Join a click into a field, the selection of its text, and the typing there into one step."""
    joined: list[list[_Deed]] = []
    for deed in deeds:
        if isinstance(deed.action, TypeText):
            before: list[_Deed] = []
            if len(joined) > 1 and _presses(joined[-1], "backspace", "delete") and _presses(joined[-2], "ctrl+a"):
                joined.pop()
            if joined and _presses(joined[-1], "ctrl+a"):
                before = joined.pop()
            if joined and _focuses(joined[-1], deed, replaced=bool(before)):
                before = joined.pop() + before
            joined.append([*before, deed])
        else:
            joined.append([deed])
    return joined


def _presses(deeds: list[_Deed], *chords: str) -> bool:
    return len(deeds) == 1 and isinstance(deeds[0].action, PressKeys) and "+".join(deeds[0].action.keys) in chords


def _focuses(deeds: list[_Deed], typed: _Deed, *, replaced: bool) -> bool:
    """Return whether a click only gave the focus to the field that then got the text."""
    deed, clicked = deeds[0], deeds[0].action
    if len(deeds) != 1 or not isinstance(clicked, Click) or clicked.point is None or clicked.button != "left":
        return False
    on = deed.element
    elsewhere = deed.window and typed.window and deed.window != typed.window
    if elsewhere or (on is not None and on.role in _PRESSED):
        return False  # a button over the field
    field = typed.record.aim.field or (on.box if on is not None else None)
    if clicked.count == 2 or (not replaced and _puts_the_cursor(deed, field)):
        return False
    boxes: list[Region] = [typed.record.aim.field.region] if typed.record.aim.field is not None else []
    if typed.element is not None and typed.element.box is not None and typed.element.role in _FIELDS:
        boxes.append(typed.element.box.region)
    return any(box.contains(clicked.point) for box in boxes)


def _step(deeds: list[_Deed], after: list[_Deed]) -> _Json:
    """Return a step of a recipe as JSON; `after` are the next step's. Raises UsageError for a target without a name."""
    deed, window = deeds[-1], deeds[-1].window
    match deed.action:
        case OpenApp(name):
            return {"open": name}
        case TypeText(text):
            known = deed.element is not None and deed.element.role in _FIELDS
            field = {"into": _thing(deed)} if known else _in(window)
            more = {"replace": True} if _replaces(deeds) else {"empty": True} if _is_empty_page(deed) else {}
            return {"type": {"text": text, **field, **more}}
        case PressKeys(keys):
            return {"press": {"keys": "+".join(keys), **_in(window)}}
        case Scroll(_, dx, dy):
            way = "down" if dy > 0 else "up" if dy < 0 else "right" if dx > 0 else "left"
            return {"scroll": {"direction": way, "notches": max(1, round(abs(dy or dx))), **_in(window)}}
        case Click(_, _, count) if count > 1 and deed.element is not None and deed.element.role in _FIELDS:
            raise _cannot(deed, "selects a part of a text, which a recipe cannot find again")
        case Click() if deed.element is not None and deed.element.role in _PARTED and not _presses(after, "ctrl+a"):
            raise _cannot(deed, "clicks a part of a control, and a recipe knows only the whole")
        case Click() if _chooses_a_place(deed, after):
            raise _cannot(deed, "puts the cursor into a text, where a recipe cannot find it again")
        case Click(_, button, count):
            return {"click": _thing(deed) | ({"button": button} if button != "left" else {})
                    | ({"count": count} if count > 1 else {}) | _wanted_state(deed)}  # fmt: skip
    raise _cannot(deed, "is no step of a recipe")


def _replaces(deeds: list[_Deed]) -> bool:
    thrice = any(isinstance(deed.action, Click) and deed.action.count == 3 for deed in deeds)
    return thrice or any(_presses([deed], "ctrl+a") for deed in deeds)


def _chooses_a_place(deed: _Deed, after: list[_Deed]) -> bool:
    """Return whether a click sets the cursor in a text, and no key moves it afterwards."""
    element = deed.element
    if element is None or element.role not in _FIELDS or _presses(after, "ctrl+a", "ctrl+home", "ctrl+end"):
        return False
    return _puts_the_cursor(deed, element.box)


def _puts_the_cursor(deed: _Deed, box: BoxRecord | None) -> bool:
    """Return whether a click chose a place in a text: in a field of several lines with something in it."""
    if box is None or box.height < _LINES or (deed.element is not None and deed.element.role == "terminal"):
        return False
    shot = deed.shot()
    return shot is None or not _is_blank(*shot, box.region)


def _is_empty_page(deed: _Deed) -> bool:
    """Return whether a text went into a field of several lines that was empty."""
    element, shot = deed.element, deed.shot()
    if element is None or element.box is None or element.role not in _FIELDS - {"terminal"} or shot is None:
        return False
    return element.box.height >= _LINES and _is_blank(*shot, element.box.region)


def _is_blank(shot: "Image", size: Size, box: Region) -> bool:
    """Return whether a field shows nothing but a caret."""
    import numpy as np

    across, down = shot.width / size.width, shot.height / size.height
    sides = (box.left + 4) * across, (box.top + 4) * down, (box.right - 4) * across, (box.bottom - 4) * down  # no frame
    ends = (shot.width, shot.height) * 2
    left, top, right, bottom = (min(max(0, round(side)), end) for side, end in zip(sides, ends, strict=True))
    if left >= right or top >= bottom:  # it is not on the screen
        return False
    grays = np.asarray(shot.crop((left, top, right, bottom)).convert("L"), dtype=np.int16)
    columns = np.nonzero((np.abs(grays - np.median(grays)) > 40).any(axis=0))[0]
    return columns.size == 0 or bool(columns[-1] - columns[0] <= _CARET * across)


def _in(window: str) -> _Json:
    return {"in": window} if window else {}


def _thing(deed: _Deed) -> _Json:
    """Return the target. Raises UsageError if it has no name, or several controls have this name."""
    element = deed.element
    if element is None or not (element.name or element.role in _FIELDS) or element.role in _CONTAINERS - _FIELDS:
        words = _words_beside(deed)
        if not (picture := deed.picture(once=not words)):
            raise _cannot(deed, "clicks something that has no name, and no picture of its own")
        named = {"name": words} if words else {}
        role = {} if element is None or element.role in _CONTAINERS else {"role": element.role}
        return {**named, **role, **_in(deed.window), "picture": picture}
    described = element if isinstance(element, DescribedRecord) else DescribedRecord()
    called = (element.role in _VALUES and described.label) or element.name
    name = {"name": re.sub(r"…$", "*", called)} if called else {}
    role = {"role": element.role} if described.source != "words" else {}
    if described.alike > 1 and not described.near and "focused" not in element.states:
        raise _cannot(deed, f"targets one of {described.alike} controls with the same name")
    near = {"near": described.near} if described.alike > 1 and described.near else {}
    return {**name, **role, **_in(deed.window), **near}


def _words_beside(deed: _Deed) -> str:
    """Return the OCR words at a control that the desktop does not name; "" if they have too few letters."""
    read = re.fullmatch("“(.+)”", (deed.record.aim.names or [""])[-1])
    if read is None or sum(map(str.isalpha, read[1])) < _LETTERS:
        return ""
    return "" if any(one.name == read[1] for one in deed.record.elements) else re.sub(r"…$", "*", read[1])


def _wanted_state(deed: _Deed) -> _Json:
    """Return the switch's state after the click, so that a switch already in this state is left alone."""
    element = deed.element
    plain = isinstance(deed.action, Click) and (deed.action.button, deed.action.count) == ("left", 1)
    if not plain or element is None or element.role not in _SWITCHES:
        return {}
    return {"to": "off" if {"checked", "pressed"} & set(element.states) else "on"}


def _expected(bundle: Bundle) -> list[_Json]:
    """Return the settings and files that the run changed."""
    expected: list[_Json] = []
    for change in bundle.run.receipt.receipt.changes if bundle.run.receipt is not None else ():
        if change.kind == "setting" and change.after is not None:
            expected.append({"setting": change.what, "becomes": change.after})
        elif change.kind == "file":
            expected.append({"file": change.what, "becomes": "gone" if change.after is None else "written"})
    return expected[:_MOST_EXPECTED]


def _filled(data: _Json, of: Mapping[str, str]) -> _Json:
    """Return a recipe with placeholders for texts: anywhere in typed texts, elsewhere only for whole words."""
    longest = "|".join(map(re.escape, sorted(of, key=len, reverse=True))) or "(?!)"  # of none: matches nothing
    anywhere, words = re.compile(longest), re.compile(rf"(?<!\w)(?:{longest})(?!\w)")

    def put(value: Any, key: str = "") -> Any:
        match value:
            case dict():
                return {name: put(one, name) for name, one in value.items()}
            case list():
                return [put(one, key) for one in value]
            case str() if key == "becomes":
                return of.get(value, value)
            case str() if key not in _FIXED:
                return (anywhere if key == "text" else words).sub(lambda found: of[found[0]], value)
        return value

    filled: _Json = put(data)
    return filled


def _with_parameters(data: _Json, parameters: Mapping[str, str]) -> _Json:
    """Replace texts with parameters, and masked texts with secret ones."""
    kept: _Json = {name: {"default": text} for name, text in parameters.items()}
    if wrong := [name for name in parameters if not PARAMETER.fullmatch(name)]:
        raise UsageError(f"A parameter cannot be called {wrong[0]!r}.", "Use letters, digits and _.")
    if parameters:
        data = _filled(data, {text: f"{{{name}}}" for name, text in parameters.items() if text})
        for name, text in parameters.items():
            if f"{{{name}}}" not in str(data["steps"]):
                raise UsageError(
                    f"No step of the run has the text {text!r}, which is to become {{{name}}}.",
                    "Write what it typed, or the words of a name.",
                )
        follows = {f"{{{name}}}" for name in parameters}
        if any(one["becomes"] in follows for one in data["expect"]):  # other settings follow from the number
            data["expect"] = [one for one in data["expect"] if "setting" not in one or one["becomes"] in follows]
    secrets = [step["type"] for step in data["steps"] if "type" in step and MASK.search(step["type"]["text"])]
    for number, step in enumerate(secrets, 1):
        name = "secret" if len(secrets) == 1 else f"secret_{number}"
        step["text"] = f"{{{name}}}"
        kept[name] = {"secret": True}
    return {**data, "parameters": kept}
