"""Where the wheel only scrolls, and whether something moved."""

from collections.abc import Sequence

from agent.core.geometry import Region
from agent.core.roles import role_group
from agent.literal.do.now import Move, Now
from agent.literal.find.effects import effects
from agent.literal.find.finder import WHOLE, fit_of
from agent.literal.find.scene import AMOUNTS, COMBOS, FIELDS, ROWS, Scene
from agent.screen.outline import Element

SCROLLED = role_group("what scrolls")
#: Roles whose value the wheel would change.
_NO_WHEEL = AMOUNTS | COMBOS | {"scroll bar", "page tab list", "page tab"}


def moved(now: Now, move: Move) -> bool:
    """Return whether anything changed or moved since a move."""
    if move.has("no_effect"):
        return False
    if effects(move.scene, now.scene, (), ()):
        return True
    boxes = {(element.role, element.name): element.box for element in move.scene.elements if element.name}
    return any(
        boxes.get((element.role, element.name), element.box) != element.box
        for element in now.scene.elements
        if element.name and now.scene.in_front(element)
    )


def safe_spot(scene: Scene, area: Element | None = None) -> tuple[float, float] | None:
    """Return a point in the front window where the wheel only scrolls; None if nothing there scrolls."""
    if scene.front is None or scene.is_late:  # without elements, a slider may be anywhere
        return None
    inside = scene.shown(without="")
    if any(element.source != "words" for element in inside):
        scrolled = SCROLLED - {"panel", "page"} | {"scroll bar"}
        if not any(element.role in scrolled or "offscreen" in element.states for element in inside):
            return None
    middle = scene.front.box.middle  # the pane in the middle, not a list beside it
    panes = [one for one in inside if one.role in SCROLLED and one.box.height >= 80 and one.box.contains(middle)]
    panes.sort(key=lambda element: (element.role in ("panel", "page"), -element.box.width * element.box.height))
    boxes = [area.box] if area is not None else [*(pane.box for pane in panes), scene.front.box]
    return next((spot for box in boxes if (spot := _safe_spot_in(scene, box, inside)) is not None), None)


def _safe_spot_in(scene: Scene, box: Region, inside: Sequence[Element]) -> tuple[float, float] | None:
    kept = [element.box for element in inside if element.role in _NO_WHEEL | FIELDS - {"document text", "terminal"}]
    # A slider of GTK 4 takes the wheel beyond the box that it reports: keep off its row.
    sliders = [one.box.middle for one in inside if one.role == "slider"]
    kept += [one.box for one in inside if one.role in ROWS and any(map(one.box.contains, sliders))]
    kept = [other for other in kept if other.width * other.height < 0.5 * box.width * box.height]
    bottom, right = min(box.bottom, scene.outline.size.height), min(box.right, scene.outline.size.width)
    for across in (0.5, 0.03, 0.25, 0.75, 0.12):
        for down in (0.5, 0.3, 0.7, 0.15, 0.9):
            x, y = box.left + across * (right - box.left), box.top + down * (bottom - box.top)
            if not any(covers(other, x, y, 6, 6) for other in kept):
                return x, y
    return None


def covers(box: Region, x: float, y: float, around: int, above: int) -> bool:
    """Return whether a point is in a box widened by `around` pixels at the sides and below, and by `above` pixels."""
    return box.left - around <= x <= box.right + around and box.top - above <= y <= box.bottom + around


def area_named(now: Now, name: str) -> Element | None:
    """Return the list, page or pane of that name."""
    scrolled = (one for one in now.scene.elements if one.role in SCROLLED)
    return next((one for one in scrolled if fit_of(now.scene.text_of(one), name) >= WHOLE), None)
