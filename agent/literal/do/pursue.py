"""Dispatches each kind of goal to the function that pursues it."""

from agent.literal.do import amounts, choosing, clicking, files, folders, keys, repeating, sums, toggling, windows
from agent.literal.do import type_text as text
from agent.literal.do import write_document as texts
from agent.literal.do.known_places import known_place, page_named
from agent.literal.do.now import Now, Pursuit
from agent.literal.goals import (
    ArrangeWindow,
    Calculate,
    Choose,
    Click,
    Close,
    CloseOthers,
    Goal,
    MakeFolder,
    Open,
    Press,
    Rename,
    Repeat,
    ReplaceText,
    SaveAs,
    Scroll,
    SetValue,
    Target,
    Toggle,
    Transfer,
    Trash,
    Type,
    Wait,
    WriteFile,
)  # fmt: skip
from agent.literal.vocabulary.places import Place, find_dialog


def pursue(now: Now, goal: Goal) -> Pursuit:
    """Return the steps for a goal."""
    match goal:
        case Open(kind="file" | "folder"):
            return files.open_file(now, goal)
        case Open(name, "settings" | "") | Click(Target(name), "left") if dialog := _embedded(now, name):
            return windows.open_it(now, Open(dialog, "application"))
        case Open(name, "settings" | "") if (page := _page(now, name)) is not None:
            return clicking.go_to(now, page)
        case Open():
            return windows.open_it(now, goal)
        case Click(target, "left", 1, True) if not target.inside and (page := _page(now, target.name)) is not None:
            return clicking.go_to(now, page)
        case Click():
            return _then(now, clicking.click_or_choose(now, goal))
        case Toggle(target, on) if (choice := _as_choice(now, target, on=on)) is not None:
            return pursue(now, choice)
        case Toggle():
            return toggling.toggle(now, goal)
        case Choose():
            return _then(now, choosing.choose(now, goal))
        case SetValue(target, None, _, direction) if direction and _is_switched(now, target):
            return toggling.toggle(now, Toggle(target, on=direction == "up"))
        case SetValue():
            return _then(now, amounts.set_value(now, goal))
        case Type():
            return text.type_text(now, goal)
        case Press():
            return keys.press_keys(now, goal)
        case Scroll():
            return keys.scroll(now, goal)
        case Wait():
            return keys.let_pass(goal)
        case Close():
            return windows.close(now, goal)
        case CloseOthers():
            return windows.close_others(now, goal)
        case ArrangeWindow():
            return windows.arrange(now, goal)
        case MakeFolder():
            return folders.make_folder(now, goal)
        case Rename():
            return folders.rename(now, goal)
        case Trash():
            return folders.trash(now, goal)
        case Transfer():
            return folders.transfer(now, goal)
        case ReplaceText():
            return texts.replace_text(now, goal)
        case WriteFile():
            return texts.write_file(now, goal)
        case SaveAs():
            return texts.save_as(now, goal)
        case Calculate():
            return sums.calculate(now, goal)
        case Repeat():
            return repeating.repeat(now, goal)


def _then(now: Now, steps: "choosing.OrGoal") -> Pursuit:
    """Pursue the goal that the steps return if the control turned out to be of another kind."""
    end = yield from steps
    return (yield from pursue(now, end)) if isinstance(end, Choose | Click | SetValue | Type) else end


def _is_switched(now: Now, target: Target) -> bool:
    """Return whether "bigger" is a switch on this desktop, as for GNOME's large text."""
    place = known_place(now, target)
    return place is not None and place.role in ("switch", "check box")


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
    """Return the choice if a switched thing is a combo box on this desktop, as GNOME's 24-hour clock or AM / PM."""
    place = known_place(now, target, on=on)
    if place is None or place.role != "combo box" or not place.choices:
        return None
    return Choose(place.choices[0], Target(place.control, inside=target.inside) if place.control else target)
