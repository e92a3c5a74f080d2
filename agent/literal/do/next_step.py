"""The next step for a goal of any kind."""

from agent.literal.do import amounts, choosing, clicking, moving, toggling, typing_text, window_goals
from agent.literal.do.looking import known_place, page_named
from agent.literal.do.proof import scene_before
from agent.literal.find.scene import COMBOS
from agent.literal.goals import (
    ArrangeWindow,
    Calculate,
    Choose,
    Click,
    Close,
    Goal,
    MakeFolder,
    Open,
    Press,
    Rename,
    SaveAs,
    Scroll,
    SetValue,
    Target,
    Toggle,
    Trash,
    Type,
    Wait,
    WriteFile,
)
from agent.literal.language.wording import describe_goal
from agent.literal.state.conversation import Move
from agent.literal.state.goal_state import BUSY, GoalState, Stuck, Verdict, wait
from agent.literal.tasks import dispatch, opening
from agent.literal.vocabulary.places import Place

#: Actions spent on one goal before it is given up.
_MOST_MOVES = 40
#: A busy window is waited for so many times; its tree is asked again after ten seconds.
_MOST_BUSY = 14


def next_step(now: GoalState) -> Verdict:
    """The next step for a goal, or its end."""
    if len(now.moves) >= _MOST_MOVES:
        return Stuck(f"After {_MOST_MOVES} actions I give up to {describe_goal(now.goal)}.")
    if _must_wait(now):
        return wait("The window in front is busy and tells nothing of what is in it yet: wait.", BUSY)
    return _pursue(now, now.goal)


def _must_wait(now: GoalState) -> bool:
    """Whether what is in front may only be late: what is not known of a window is not touched."""
    if not now.scene.is_late or isinstance(now.goal, Open | Press | Wait | Close | ArrangeWindow):
        return False
    waits = sum(move.intent == "late" and move.call.get("seconds") == BUSY for move in now.moves)
    moves = (*now.earlier, *now.moves)
    return waits < _MOST_BUSY and any(move.action == "open" or _told_then(now, move) for move in moves)


def _told_then(now: GoalState, move: Move) -> bool:
    """Whether the window that is in front now told its elements when a move was decided."""
    front, before = now.scene.front, scene_before(move)
    if front is None or before is None or before.front is None:
        return False
    same = (before.front.app, before.front.title) == (front.app, front.title)
    return same and not before.is_late and before.has_tree


def _is_switched(now: GoalState, target: Target) -> bool:
    """Whether more of a thing is a switch on this desktop: GNOME's text is larger or not."""
    place = known_place(now, target)
    return place is not None and place.role in ("switch", "check box")


def _page(now: GoalState, name: str) -> Place | None:
    """The page of a settings window that is to be opened: a row there, not an application."""
    page = page_named(now, name)
    return page if page is not None and page.path else None


def _as_choice(now: GoalState, target: Target, *, on: bool) -> Choose | None:
    """What to choose for a thing that is a combo box on this desktop: GNOME's clock shows 24 hours, or AM / PM."""
    place = known_place(now, target, on=on)
    if place is None or place.role != "combo box" or not place.choices:
        return None
    return Choose(place.choices[0], Target(place.control, inside=target.inside) if place.control else target)


def _in_combo(now: GoalState, target: Target) -> Choose | None:
    """ "Slight under Hinting" as a choice, where it is a combo box that is called so."""
    if not target.under or not target.name:
        return None
    control = Target(target.under, inside=target.inside)
    opened = any(move.about == target.under for move in now.tried("focus"))  # what hangs open may lie over it
    return Choose(target.name, control) if opened or now.finder.best(control, COMBOS) is not None else None


def _pursue(now: GoalState, goal: Goal) -> Verdict:
    match goal:
        case Open(kind="file" | "folder"):
            return opening.open_file(now, goal)
        case Open(name, "settings" | "") if (page := _page(now, name)) is not None:
            return clicking.go_to(now, page)
        case Click(target, "left", 1, True) if not target.inside and (page := _page(now, target.name)) is not None:
            return clicking.go_to(now, page)
        case Open():
            return window_goals.open_it(now, goal)
        case Click(target, "left", 1) if (instead := _in_combo(now, target)) is not None:
            return _pursue(now, instead)
        case Click():
            return clicking.click(now, goal)
        case Toggle(target, on) if (instead := _as_choice(now, target, on=on)) is not None:
            return _pursue(now, instead)
        case Toggle():
            return toggling.toggle(now, goal)
        case Choose():
            come_to = choosing.choose(now, goal)
            return _pursue(now, come_to) if isinstance(come_to, Click | SetValue | Type) else come_to
        case SetValue(target, None, _, direction) if direction and _is_switched(now, target):
            return toggling.toggle(now, Toggle(target, on=direction == "up"))
        case SetValue():
            held = amounts.set_value(now, goal)
            return _pursue(now, held) if isinstance(held, Choose) else held
        case Type():
            return typing_text.type_text(now, goal)
        case Press():
            return moving.press_keys(now, goal)
        case Scroll():
            return moving.scroll(now, goal)
        case Wait():
            return moving.let_pass(now, goal)
        case Close():
            return window_goals.close(now, goal)
        case ArrangeWindow():
            return window_goals.arrange(now, goal)
        case MakeFolder() | Rename() | Trash() | WriteFile() | SaveAs() | Calculate():
            return dispatch.pursue(now, goal)
