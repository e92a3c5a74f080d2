"""Dispatches each kind of goal to the function that pursues it."""

from collections.abc import Callable
from typing import Any

from agent.literal import goals
from agent.literal.do import amounts, clicking, documents, folders, keyboard, repeating, windows
from agent.literal.do.known_places import known_place, page_named
from agent.literal.do.now import Already, Done, Now, OrGoal, Pursuit
from agent.literal.do.toggling import Toggling
from agent.literal.goals import ArrangeWindow, Choose, Click, Goal, Open, SetValue, Target, Toggle, target_of
from agent.literal.vocabulary import lexicon
from agent.literal.vocabulary.places import Place, find_dialog, find_panel

#: Each function yields the steps for a goal.
_PURSUED: dict[type, Callable[[Now, Any], OrGoal]] = {
    goals.Open: windows.open_it,
    goals.Click: clicking.click,
    goals.Toggle: lambda now, goal: Toggling(now, goal).pursue(),
    goals.Choose: clicking.choose,
    goals.SetValue: amounts.set_value,
    goals.Type: keyboard.enter_text,
    goals.Press: keyboard.press_keys,
    goals.Scroll: keyboard.scroll,
    goals.Wait: keyboard.let_pass,
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
    goals.Calculate: keyboard.calculate,
    goals.Repeat: repeating.repeat,
}
#: Goals that read the control before each step, so that beginning anew does nothing twice.
_CONTROLS = (Click, Toggle, Choose, SetValue)
#: Goals that are reached only once no question about them is open.
_SETTINGS = (Toggle, Choose, SetValue)


def pursue(now: Now, goal: Goal) -> Pursuit:
    """Yield the steps for a goal."""
    target = target_of(goal) if isinstance(goal, _CONTROLS) else None
    place = None if target is None or target.here else known_place(now, target)
    if place is not None and place.path[:1] == ("Preferences",) and windows.preferences_of(now, place.app) is None:
        yield from pursue(now, Open(place.app, "settings"))  # a menu item opens its window
    begun = len(now.moves)
    end: Done | Goal = goal
    while not isinstance(end, Done):
        end = yield from (_resumed(now, end) if isinstance(end, _CONTROLS) else _steps(now, end))
    touched = isinstance(goal, _SETTINGS) and not isinstance(end, Already)
    if touched and (asked := windows.question_since(now, begun)):
        return Done(f"{end.words}; “{asked}” waits for an answer", verified=False, on_the_way=True)
    return end


def _resumed(now: Now, goal: Goal) -> OrGoal:
    """Yield the steps for a goal. If something came in the way, bring the window back and begin anew, once."""
    steps, move, again = _steps(now, goal), None, False
    while True:
        try:
            step = next(steps) if move is None else steps.send(move)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # a generator's result is untyped here
        move = yield step
        if move.outdated and not again:
            if (front := move.scene.front) is not None:
                yield from windows.raise_window(now, front)
            steps, move, again = _steps(now, goal), None, True


def _steps(now: Now, goal: Goal) -> OrGoal:
    match goal:
        case Open(kind="page"):
            return documents.open_page(now, goal)
        case Open(kind="file" | "folder"):
            return documents.open_file(now, goal)
        case Open(name, "settings" | "") | Click(Target(name), "left") if dialog := _embedded(now, name):
            return windows.open_it(now, Open(dialog, "application"))
        case Open(name, "settings" | "") if (page := _page(now, name)) is not None:
            return clicking.go_to(now, page)
        case Open(name, "settings") if now.names.desktop and (dialog := find_panel(name, now.names.desktop)):
            return windows.open_it(now, Open(dialog, "application"))
        case Click(target, "left", 1, True) if not target.inside and (page := _page(now, target.name)) is not None:
            return clicking.go_to(now, page)
        case ArrangeWindow("focus", name) if name and windows.is_tab_here(now, name):
            return clicking.click(now, Click(Target(name, "page tab")))
        case Toggle(target, on) if (choice := _as_choice(now, target, on=on)) is not None:
            return clicking.choose(now, choice)
        case SetValue(target, None, _, direction) if (
            direction and (known := known_place(now, target)) is not None and known.is_switch
        ):
            return _steps(now, Toggle(target, on=direction == "up"))
    return _PURSUED[type(goal)](now, goal)


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
    return "" if name.casefold() in lexicon.applications() else find_dialog(name, now.names.desktop, now.names.of)


def _as_choice(now: Now, target: Target, *, on: bool) -> Choose | None:
    """Return the choice if a switched thing is a combo box on this desktop, such as GNOME's time format."""
    place = known_place(now, target, on=on)
    if place is None or place.role != "combo box" or not place.choices:
        return None
    return Choose(place.choices[0], Target(place.control, inside=target.inside) if place.control else target)
