"""Dispatches each kind of goal to the function that pursues it."""

from collections.abc import Callable
from typing import Any

from agent.literal import goals
from agent.literal.do import amounts, choosing, clicking, keys, repeating, sums, toggling, windows
from agent.literal.do import type_text as text
from agent.literal.do.files import documents, folders, opening
from agent.literal.do.known_places import known_place, page_named
from agent.literal.do.now import Now, Pursuit
from agent.literal.goals import Choose, Click, Goal, Open, SetValue, Target, Toggle
from agent.literal.vocabulary.places import Place, find_dialog

#: Each function yields the steps for a goal. It ends with a verdict, or with another goal if the control turned out to
#: be of another kind.
_PURSUED: dict[type, Callable[[Now, Any], "choosing.OrGoal"]] = {
    goals.Open: windows.open_it,
    goals.Click: clicking.click_or_choose,
    goals.Toggle: toggling.toggle,
    goals.Choose: choosing.choose,
    goals.SetValue: amounts.set_value,
    goals.Type: text.type_text,
    goals.Press: keys.press_keys,
    goals.Scroll: keys.scroll,
    goals.Wait: keys.let_pass,
    goals.Close: windows.close,
    goals.CloseOthers: windows.close_others,
    goals.ArrangeWindow: windows.arrange,
    goals.MakeFolder: folders.make_folder,
    goals.Rename: folders.rename,
    goals.Trash: folders.trash,
    goals.Transfer: folders.transfer,
    goals.ReplaceText: documents.replace_text,
    goals.WriteFile: documents.write_file,
    goals.SaveAs: documents.save_as,
    goals.Calculate: sums.calculate,
    goals.Repeat: repeating.repeat,
}


def pursue(now: Now, goal: Goal) -> Pursuit:
    """Return the steps for a goal."""
    match goal:
        case Open(kind="page"):
            return opening.open_page(now, goal)
        case Open(kind="file" | "folder"):
            return opening.open_file(now, goal)
        case Open(name, "settings" | "") | Click(Target(name), "left") if dialog := _embedded(now, name):
            return windows.open_it(now, Open(dialog, "application"))
        case Open(name, "settings" | "") if (page := _page(now, name)) is not None:
            return clicking.go_to(now, page)
        case Click(target, "left", 1, True) if not target.inside and (page := _page(now, target.name)) is not None:
            return clicking.go_to(now, page)
        case Toggle(target, on) if (choice := _as_choice(now, target, on=on)) is not None:
            return pursue(now, choice)
        case SetValue(target, None, _, direction) if (
            direction and (known := known_place(now, target)) is not None and known.is_switch
        ):
            return pursue(now, Toggle(target, on=direction == "up"))
    return _then(now, _PURSUED[type(goal)](now, goal))


def _then(now: Now, steps: "choosing.OrGoal") -> Pursuit:
    end = yield from steps
    return (yield from pursue(now, end)) if isinstance(end, goals.Goal) else end


def _page(now: Now, name: str) -> Place | None:
    """Return the page if the name is a row in a settings window, not an application."""
    page = page_named(now, name)
    return page if page is not None and page.path else None


def _embedded(now: Now, name: str) -> str:
    """Return the settings dialog of that name if the front window lists such dialogs; "" if not.

    XFCE's Settings embeds dialogs, which then report no elements. So they are opened by themselves.
    """
    front = now.scene.front
    if now.names.desktop is None or front is None or front is not now.scene.window_of_program("settings"):
        return ""
    return find_dialog(name, now.names.desktop, now.names.of)


def _as_choice(now: Now, target: Target, *, on: bool) -> Choose | None:
    """Return the choice if a switched thing is a combo box on this desktop, such as GNOME's time format."""
    place = known_place(now, target, on=on)
    if place is None or place.role != "combo box" or not place.choices:
        return None
    return Choose(place.choices[0], Target(place.control, inside=target.inside) if place.control else target)
