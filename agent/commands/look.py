"""`mai-agent look`: prints the elements of the screen now, and draws them on a picture of it."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import TimeoutError as LateError
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from agent.commands.arguments import open_own_desktop
from agent.desktop.guard.desktop import GuardedDesktop
from agent.run.observing.outliner import Outliner
from agent.safety.stop import StopSwitch
from agent.screen.capture import Frame
from agent.screen.ocr import reading_languages
from agent.screen.outline import Element, Outline
from foundation.command_line import Parser
from foundation.errors import EnvironmentLacksError, ExitStatus, UsageError
from foundation.foreign_text import printable
from foundation.printing import put, put_json
from foundation.stray_output import stray_output_kept

if TYPE_CHECKING:
    from agent.desktop.protocol.elements import Elements

#: The tree takes tenths of a second at most, reading a whole new screen some seconds on a busy machine.
_PATIENCE = 60.0
#: States that say what a person sees, in the table.
_TOLD = (
    *("checked", "pressed", "selected", "focused", "expanded", "collapsed", "indeterminate", "editable", "disabled"),
    *("offscreen", "clickable"),
)
_WIDE = 46


@stray_output_kept()
def main(argv: Sequence[str]) -> int:
    """Look once; status 3 where there is no screen."""
    parser = Parser(prog="mai-agent look", description="Print the elements of the screen now, with a marked picture.")
    parser.add_argument(
        "--json", action="store_true", help="one JSON object: size, elements, windows, what lacks and why"
    )
    parser.add_argument("--picture", metavar="FILE", type=Path, help="where the picture goes "
                        "(default: a new file in the temporary folder; with --json none)")  # fmt: skip
    parser.add_argument("--tree", action="store_true", help="the accessibility tree alone, without reading words")
    parser.add_argument("--monitor", metavar="N", type=int, help="which monitor to look at")
    given = parser.parse_args(argv)
    frame, outline = _look(given.monitor, words=not given.tree)
    picture = None if given.json and given.picture is None else _draw(frame, outline, given.picture)
    if given.json:
        told = outline.to_json() | ({"picture": str(picture)} if picture else {})
        put_json(told)
    else:
        put(*table(outline), f"picture: {picture}")
    return ExitStatus.DONE


def _look(monitor: int | None, *, words: bool) -> tuple[Frame, Outline]:
    desktop = open_own_desktop(StopSwitch(), monitor)
    protected = GuardedDesktop(desktop, dry_run=True)
    with closing(desktop), closing(protected.screen):
        frame = protected.screen.grab()
        if not words:
            return frame, _tree(protected.open_elements(), frame)
        languages, _ = reading_languages(os.environ)
        with closing(Outliner(protected.open_elements, protected.open_windows, languages)) as outliner:
            try:
                return frame, outliner.take(frame).result(_PATIENCE)
            except LateError as error:
                raise EnvironmentLacksError("The screen could not be read in time.", "Try --tree.") from error


def _tree(elements: "Elements | None", frame: Frame) -> Outline:
    if elements is None:
        return Outline(frame.viewport.region.size, (), (), "Here, no accessibility tree is told.")
    with closing(elements):
        return elements.outline()


def _draw(frame: Frame, outline: Outline, path: Path | None) -> Path:
    from agent.screen.drawing import draw_marks

    try:
        if path is None:
            with tempfile.NamedTemporaryFile(prefix="mai-agent-look-", suffix=".png", delete=False) as made:
                path = Path(made.name)
        draw_marks(frame.image, outline.elements, frame.viewport).save(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"The picture could not be written ({error}).", "Name a PNG file with --picture.") from error
    return path


def table(outline: Outline) -> Iterator[str]:
    """The elements as lines for a person, under the windows that they are in; strangers' texts cannot steer them."""
    window = None
    for element in outline.elements:
        if element.window != window:
            window = element.window
            yield f"{printable(window) or 'the desktop'}{f'  ({printable(element.app)})' if element.app else ''}"
        yield _line(element)
    if not outline.elements:
        yield "No elements."
    if outline.lacks:
        yield f"note: {printable(outline.lacks)}"


def _line(element: Element) -> str:
    box = element.box
    name = printable(element.name)
    name = name if len(name) <= _WIDE else name[: _WIDE - 1] + "…"
    told = [state for state in _TOLD if state in element.states]
    if element.value:
        value = printable(" ".join(element.value.split()))
        told.insert(0, f"= {value if len(value) <= _WIDE else value[: _WIDE - 1] + '…'}")
    if not element.trusted and "offscreen" not in element.states:
        told.append("not trusted")
    place = f"{box.left},{box.top} {box.width}x{box.height}"
    return f"  {element.id:>4}  {element.role:<18}  {name:<{_WIDE}}  {place:<18}  {', '.join(told)}".rstrip()
