"""The applications on the accessibility bus, and how their window nodes match the windows of the desktop."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent.core.geometry import Region
from agent.desktop.protocol.windows import Layer
from agent.desktop.trees.bus import DBUS, Call, Question
from agent.desktop.trees.roles import VISIBLE, WINDOWS, has
from agent.desktop.trees.tree import ROOT, Node, Ref, children, details, getter, refs, scaled, text_of

_REGISTRY = ("org.a11y.atspi.Registry", ROOT)
#: Toolkits that show web pages, where any element may be clickable.
_BROWSERS = ("Gecko", "Chromium", "WebKitGtk", "WebKitGTK")
#: The window scales that desktops offer.
_SCALES = (1, 2, 3)
_MOST_APPLICATIONS = 200
_MOST_WINDOWS = 50
#: Pixels by which the sizes of a window and of its node may differ: GTK 4 leaves out borders that it draws itself.
_BORDER = 64


@dataclass(slots=True)
class Application:
    """An application on the accessibility bus, with what earlier reads have found out."""

    ref: Ref
    name: str
    pid: int | None
    toolkit: str
    matches: bool = True  # whether it answers `tree.below`
    scale: int | None = None  # how many pixels it counts as one: GTK 3 on X11, if windows are scaled; None: not known

    @property
    def is_gtk4(self) -> bool:
        """Whether coordinates are relative to the window, and one call returns all nodes."""
        return self.toolkit == "GTK"

    @property
    def is_browser(self) -> bool:
        return self.toolkit in _BROWSERS


def registered() -> Question[list[Ref] | None]:
    """Return the applications in the registry; None if there is no registry."""
    [reply] = yield [children(_REGISTRY)]
    return None if reply is None else refs(reply, _MOST_APPLICATIONS)


def of_process(known: Iterable[Ref], pid: int | None) -> Question[list[Ref]]:
    """Return a process's applications that are not known yet. The bus itself knows the PIDs, even of hung processes."""
    found = yield from registered()
    fresh = [ref for ref in found or () if ref not in {*known}]
    replies = yield [_process(ref) for ref in fresh]
    return [ref for ref, reply in zip(fresh, replies, strict=True) if reply and reply[0] == pid]


def _process(ref: Ref) -> Call:
    return Call(*DBUS, "GetConnectionUnixProcessID", "u", "s", (ref[0],))


def introduce(ref: Ref) -> Question[Application | None]:
    """Ask an application for its name, process and toolkit; None if it does not answer."""
    replies = yield [_process(ref), getter(ref, "Accessible", "Name"), getter(ref, "Application", "ToolkitName")]
    if replies[1] is None:
        return None
    pid, name, toolkit = (reply[0] if reply else None for reply in replies)
    return Application(ref, text_of(name), pid, text_of(toolkit))


def windows_of(application: Application) -> Question[list[Node]]:
    """Return the nodes of an application's windows."""
    [reply] = yield [children(application.ref)]
    found = yield from details(refs(reply, _MOST_WINDOWS), ("Name",))
    # GTK 4.8 gives dialogs the role "filler", and sets "showing" on no node. Other nodes match no window later.
    dialogs = {node.ref for node in found if application.is_gtk4 and has(node.states, VISIBLE) and node.name}
    return [node for node in found if node.role in WINDOWS or node.showing or node.ref in dialogs]


def matching(nodes: Sequence[Node], layers: Sequence[Layer], pid: int | None) -> dict[Ref, Layer]:
    """Match window nodes to layers of the same process, by title, size and place."""
    own = [layer for layer in layers if pid is not None and layer.window.pid == pid]
    clients = {layer.client for layer in own}
    own += [layer for layer in layers if layer.window.pid is None and layer.client in clients and layer not in own]
    # An application in a container has another PID there, so no layer has its PID: then title and size must both match.
    # Seen from inside a container, applications outside have PID 0: then size and place are enough, because a dialog's
    # node may have another title than its window.
    least, candidates = (1, own) if own else (5 if pid == 0 else 8, list(layers))
    pairs = [(_likeness(node, layer), node, layer) for node in nodes for layer in candidates if not layer.backdrop]
    found: dict[Ref, Layer] = {}
    taken: set[int] = set()
    for score, node, layer in sorted(pairs, key=lambda pair: (-pair[0], _apart(pair[1], pair[2]))):
        if score >= least and node.ref not in found and id(layer) not in taken:
            found[node.ref] = layer
            taken.add(id(layer))
    return found


def matched_windows(application: Application, layers: Sequence[Layer]) -> Question[tuple[list[Node], dict[Ref, Layer]]]:
    """Return the nodes of an application's windows, with the layers of those that are matched, and note its scale."""
    was = application.scale or 1
    frames = yield from scaled(windows_of(application), was)
    found = matching(frames, layers, application.pid)
    application.scale = _scale_of(was, frames, found)
    if application.scale != was:
        frames = yield from scaled(windows_of(application), application.scale)
        found = matching(frames, layers, application.pid)
    return frames, found


def _scale_of(was: int, frames: Sequence[Node], found: Mapping[Ref, Layer]) -> int:
    """Return how many pixels the application counts as one: the scale that fits its windows clearly best."""
    titled = _titled(frames, found)
    misfit = {scale: sum(_misfit(*pair, scale / was) for pair in titled) for scale in _SCALES}
    best = min(_SCALES, key=misfit.__getitem__)
    return best if misfit[best] < misfit[was] / 4 else was


def _titled(frames: Sequence[Node], found: Mapping[Ref, Layer]) -> list[tuple[Region, Region]]:
    """Return the boxes of windows and of their nodes that surely belong together, because they have one title."""
    pairs = ((node, found[node.ref]) for node in frames if node.ref in found)
    return [(node.box, layer.box) for node, layer in pairs if node.box and node.name == layer.window.title != ""]


def _misfit(own: Region, window: Region, scale: float) -> float:
    return abs(window.width - own.width * scale) + abs(window.height - own.height * scale)


def _likeness(node: Node, layer: Layer) -> int:
    """Score how well a node matches a layer; 0 if it does not."""
    score, own, boxes = 4 * (bool(node.name) and node.name == layer.window.title), node.box, (layer.box, layer.outer)
    if own and any(max(abs(box.width - own.width), abs(box.height - own.height)) <= _BORDER for box in boxes):
        score += 4
        score += any(max(abs(box.left - own.left), abs(box.top - own.top)) <= _BORDER for box in boxes)
    return score


def _apart(node: Node, layer: Layer) -> int:
    """Return how many pixels a node and a layer are apart: it tells windows of one title and size from each other."""
    box, boxes = node.box, (layer.box, layer.outer)
    return 0 if box is None else min(abs(one.left - box.left) + abs(one.top - box.top) for one in boxes)


def origin_of(application: Application, layer: Layer, frame: Node) -> tuple[int, int]:
    """Return the origin of a window's coordinates. On X11 it is the screen's origin, except for GTK 4.

    Measured with GTK 4.8 under a non-compositing window manager: it draws a border of 5 pixels around its window, which
    the window's node leaves out. A shadow is declared by the window, and the layer leaves it out.
    """
    if not application.is_gtk4:
        return layer.surface or (0, 0)
    size = frame.box or layer.box
    border_x, border_y = layer.box.width - size.width, layer.box.height - size.height
    return layer.box.left + max(0, border_x) // 2, layer.box.top + max(0, border_y) // 2
