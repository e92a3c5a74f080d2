"""Puts a report together: template, style, script, and the run's data as JSON that cannot run as code.

Texts of models and screens go into one JSON block in which no `<` is left, and the script shows them as text only.
Elsewhere they are HTML-escaped. The content security policy allows our own script and style by their hashes and nothing
else.
"""

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from agent.record.read import Bundle, read_bundle
from agent.record.redactor import Redactor
from agent.record.report.pictures import Pictures
from agent.record.report.view import screenshot, view_run, view_step
from foundation.files import write_file

#: The report's name in a bundle.
FILE_NAME = "report.html"
#: The script, one file after the other: each makes a part, and the last one puts them together.
_SCRIPTS = ("stage.js", "timeline.js", "report.js")


@dataclass(frozen=True, slots=True)
class Report:
    """A report that was written."""

    path: Path
    bytes: int
    pictures: int  # how many different screenshots are in it
    missing: int  # how many steps have none
    reduced: int  # how many screenshots were made smaller to keep the file small


def write_report(bundle: Path | Bundle, output: Path | None = None, redactor: Redactor | None = None) -> Report:
    """Write the report of a run (or of its folder) to `output`, or by default into the run's bundle.

    The redactor masks further texts. Raises UsageError: the folder holds no run. EnvironmentLacksError: the file cannot
    be written.
    """
    run = (read_bundle(bundle) if isinstance(bundle, Path) else bundle).masked(redactor)
    pictures = Pictures([screenshot(run, step) for step in run.steps])
    path = output or run.path / FILE_NAME
    page = _page(run, pictures).encode("utf-8", "replace")
    write_file(path, page)
    missing = sum(number is None for number in pictures.of_step)
    return Report(path, len(page), len(pictures.all), missing, pictures.reduced)


def _page(run: Bundle, pictures: Pictures) -> str:
    steps = [view_step(step, number) for number, step in enumerate(run.steps, 1)]
    for step, picture in zip(steps, pictures.of_step, strict=True):
        step["picture"] = picture
    run_view = view_run(run) | {"reduced": pictures.reduced}
    data = {"run": run_view, "steps": steps, "pictures": [picture.to_json() for picture in pictures.all]}
    instruction = " ".join(run_view["instruction"].split())[:120]
    title = f"{run_view['outcome']}: {instruction}" if instruction else run_view["id"]
    name = run_view["instruction"] or "A recorded run"
    return fill_page(data, title, name, plain="".join(plain_page(run_view, steps, pictures)))


def fill_page(
    data: Mapping[str, Any],
    title: str,
    name: str,
    *,
    plain: str = "",
    details: str = "",
    style: str = "",
    script: str = "",
    live: str = "",
) -> str:
    """Return the page of a run.

    Args:
        data: the run, its steps and pictures.
        title: the title of the window.
        name: the heading until the script has read the data.
        plain: what a browser without scripts shows.
        details: more of the heading, as HTML.
        style: more style, of a page that is served.
        script: more script, for a live page.
        live: HTML above the steps of a live page; lets it ask its server.
    """
    style, plain_style = part("report.css") + style, part("plain.css")
    script = "".join(map(part, _SCRIPTS)) + script
    server = " 'self'" if live else ""
    asks = f"connect-src{server}; " if live else ""
    parts = {
        "POLICY": f"default-src 'none'; img-src data:{server}; {asks}"
        f"style-src '{_hash(style)}' '{_hash(plain_style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'",
        "TITLE": html.escape(title),
        "NAME": html.escape(name),
        "STYLE": style,
        "PLAIN_STYLE": plain_style,
        "PLAIN": plain,
        "DETAILS": details,
        "LIVE": live,
        "SCRIPT": script,
        "DATA": _data(data),
    }
    # In one pass, so that a placeholder in a model's text is not filled in.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], part("report.html"))


def part(name: str, package: str = "agent.record.report") -> str:
    """Return a file that lies beside the code of a package."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def _hash(source: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}"


def _data(value: Any) -> str:
    """Return JSON that cannot end its script element, begin a comment, or break a line."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


#: Most steps, and characters of a text, in the version without a script. The script gets everything.
_MOST_STEPS, _MOST_CHARS = 200, 600


def plain_page(
    run: Mapping[str, Any], steps: Sequence[Mapping[str, Any]], pictures: Pictures, heading: str = "Steps"
) -> Iterator[str]:
    """Yield the report for a browser that runs no script: every step in words, with small pictures.

    `view` has already made all foreign texts harmless; they are escaped here.
    """
    yield '<section id="plain"><p class="notice">Without JavaScript, this is the short form of the report.</p>'
    yield _paragraph(f"{run['outcome'].replace('_', ' ')}: {run['message']}", "sum")
    yield _paragraph(run["problem"], "notice")
    for title, name in (("Evidence", "evidence"), ("What changed", "changes"), ("Undone since", "undone")):
        if lines := run.get(name):
            yield f"<h2>{title}</h2><ul>{''.join(f'<li>{html.escape(line)}</li>' for line in lines)}</ul>"
    yield f"<h2>{heading}</h2><ol>"
    shown = None
    for step in steps[:_MOST_STEPS]:
        number = step["picture"]
        image = ""
        if number is not None and number != shown:  # an unchanged screenshot is not repeated
            image = f'<img alt="" src="{pictures.all[number].thumb.data_url}">'
        shown = number
        words = (
            _paragraph(f"{step['number']}. {step['title']}", "words"),
            *(_paragraph(f"Before it: {words}", "soft") for words in step["before"]),
            _paragraph(step["thought"]),
            *(_paragraph(f"{name}: {value}") for name, value in step.get("facts", ())),
            *(_paragraph(line, "soft") for action in step["actions"] for line in _asked(action)),
            _paragraph(step["state"], f"state {step['state'].replace(' ', '-')}"),
            _paragraph(step["error"], "bad"),
            _paragraph(step["reply"]),
        )
        yield f"<li><div>{image}</div><div>{''.join(words)}</div></li>"
    yield "</ol>"
    if len(steps) > _MOST_STEPS:
        yield f"<p>{len(steps) - _MOST_STEPS} more steps are not in the short form.</p>"
    yield "</section>"


def _asked(action: Mapping[str, Any]) -> Iterator[str]:
    """The question about an action and the answer to it, as lines."""
    approval = action["approval"]
    if approval is None:
        return
    yield f"The model proposed: {action['proposed']}. Asked because {approval['reason']}."
    yield f"{approval['answer']}{' to: ' + action['changed'] if action['changed'] else ''}"


def _paragraph(text: str, kind: str = "") -> str:
    if not text:
        return ""
    cut = text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"
    return f'<p class="{html.escape(kind)}">{html.escape(cut)}</p>'
