"""`mai-agent look`: prints the elements of the screen now, and draws them on a picture of it."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from agent.commands.arguments import open_own_desktop, tell
from agent.run.observing.outliner import Eye
from agent.safety.stop import StopSwitch
from agent.screen.capture import Frame
from agent.screen.ocr import reading_languages
from agent.screen.outline import Element, Outline
from foundation.command_line import Parser
from foundation.errors import ExitStatus, UsageError
from foundation.foreign_text import printable
from foundation.stray_output import stray_output_kept

#: States that the table shows, because a person sees them on the screen.
_TOLD = (
    *("checked", "pressed", "selected", "focused", "expanded", "collapsed", "indeterminate", "editable", "disabled"),
    *("offscreen", "clickable"),
)
_WIDE = 46


@stray_output_kept()
def main(argv: Sequence[str]) -> int:
    """Look once; status 3 if there is no screen."""
    parser = Parser(prog="mai-agent look", description="Print the elements of the screen now, with a marked picture.")
    parser.add_argument(
        "--json", action="store_true", help="one JSON object: size, elements, windows, why some are missing"
    )
    parser.add_argument("--picture", metavar="FILE", type=Path, help="where the picture goes "
                        "(default: a new file in the temporary folder; with --json none)")  # fmt: skip
    parser.add_argument("--tree", action="store_true", help="the accessibility tree alone, without reading words")
    parser.add_argument("--monitor", metavar="N", type=int, help="which monitor to look at")
    arguments = parser.parse_args(argv)
    frame, outline = _look(arguments.monitor, words=not arguments.tree)
    picture = None if arguments.json and arguments.picture is None else _draw(frame, outline, arguments.picture)
    data = outline.to_json() | ({"picture": str(picture)} if picture else {})
    tell(arguments.json, data, *table(outline), f"picture: {picture}")
    return ExitStatus.DONE


def _look(monitor: int | None, *, words: bool) -> tuple[Frame, Outline]:
    desktop = open_own_desktop(StopSwitch(), monitor)
    with closing(Eye(desktop, reading_languages(os.environ)[0], words=words)) as eye:
        return eye.look()


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
    """The elements as lines for a person, grouped by window; texts from the screen cannot control the terminal."""
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
    notes = [state for state in _TOLD if state in element.states]
    if element.value:
        value = printable(" ".join(element.value.split()))
        notes.insert(0, f"= {value if len(value) <= _WIDE else value[: _WIDE - 1] + '…'}")
    if not element.trusted and "offscreen" not in element.states:
        notes.append("not trusted")
    place = f"{box.left},{box.top} {box.width}x{box.height}"
    return f"  {element.id:>4}  {element.role:<18}  {name:<{_WIDE}}  {place:<18}  {', '.join(notes)}".rstrip()
