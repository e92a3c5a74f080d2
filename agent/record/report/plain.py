"""The report for a browser that runs no script: what happened in words, step by step, with small pictures.

A browser that does run scripts reads none of it. Every text of a stranger has been through the gate of `view`, and is
escaped here: no `<` of it is left.
"""

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.record.report.pictures import Pictures

#: Steps at most, and characters of a thought: the file has all of it for the script.
_MOST_STEPS, _MOST_CHARS = 200, 600


def plain_page(run: Mapping[str, Any], steps: Sequence[Mapping[str, Any]], pictures: "Pictures") -> str:
    """The run in HTML that needs nothing else."""
    return "".join(_parts(run, steps, pictures))


def _parts(run: Mapping[str, Any], steps: Sequence[Mapping[str, Any]], pictures: "Pictures") -> Iterator[str]:
    yield '<section id="plain"><p class="notice">Without JavaScript, this is the short form of the report.</p>'
    yield _paragraph(f"{run['outcome'].replace('_', ' ')}: {run['message']}", "sum")
    yield _paragraph(run["problem"], "notice")
    for title, name in (("Evidence", "evidence"), ("What changed", "changes"), ("Undone since", "undone")):
        if lines := run.get(name):
            yield f"<h2>{title}</h2><ul>{''.join(f'<li>{html.escape(line)}</li>' for line in lines)}</ul>"
    yield "<h2>Steps</h2><ol>"
    shown = None
    for step in steps[:_MOST_STEPS]:
        number = step["picture"]
        image = ""
        if number is not None and number != shown:  # what did not change need not be in the file once more
            image = f'<img alt="" src="{pictures.all[number].thumb.data_url}">'
        shown = number
        words = (
            _paragraph(f"{step['number']}. {step['title']}", "words"),
            *(_paragraph(f"Before it: {words}", "soft") for words in step["before"]),
            _paragraph(step["thought"]),
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
    """What was asked about an action and answered: the reasons stand with what they are of."""
    asked = action["approval"]
    if asked is None:
        return
    yield f"The model proposed: {action['proposed']}. Asked because {asked['reason']}."
    yield f"{asked['answer']}{' to: ' + action['changed'] if action['changed'] else ''}"


def _paragraph(text: str, kind: str = "") -> str:
    if not text:
        return ""
    cut = text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"
    return f'<p class="{html.escape(kind)}">{html.escape(cut)}</p>'
