"""What an action hit is told, recorded and shown, wherever a run is."""

import json
from dataclasses import replace
from pathlib import Path

from stubs.events import finished, printed, record, started, step

from agent.commands import runs
from agent.console.printers import PlainPrinter
from agent.core.geometry import Region
from agent.events.as_json import to_json
from agent.events.run_events import Acted
from agent.record.read import read_bundle
from agent.record.report.view import view_step
from agent.screen.outline import Element
from agent.tui.recorded import view_of

BOX = Element(
    7, "check box", "Dark\u202e mode", Region(10, 20, 30, 40), value="secret", states=frozenset({"checked", "focused"}),
    window="Appearance",
)  # fmt: skip
TOLD = {
    "role": "check box", "name": "Dark\u202e mode", "states": ["checked", "focused"], "window": "Appearance",
    "box": {"left": 10, "top": 20, "width": 30, "height": 40}, "words": "check box “Dark\u202e mode” (checked)",
}  # fmt: skip


def events(elements=(BOX,)):
    return [
        started(),
        *(replace(event, elements=elements) if isinstance(event, Acted) else event for event in step(1)),
        finished(steps=1),
    ]


def test_an_event_tells_elements_and_the_first_beside_them_without_what_they_hold() -> None:
    [acted] = [event for event in events() if isinstance(event, Acted)]
    told = json.loads(json.dumps(to_json(acted)))
    assert told["element"] == TOLD
    assert told["elements"] == [TOLD]
    assert "secret" not in json.dumps(told)


def test_a_step_keeps_what_its_actions_hit(tmp_path: Path) -> None:
    path = record(tmp_path, events())
    line = json.loads((path / "steps.jsonl").read_text())
    assert line["actions"][0]["elements"] == [TOLD]
    [kept] = read_bundle(path).steps
    assert kept.actions[0].hit == TOLD["words"]
    assert kept.actions[0].elements[0].element == replace(BOX, id=0, value=None)


def test_what_was_hit_is_shown_in_every_view_without_what_turns_the_reading_round(tmp_path: Path, capsys) -> None:
    path = record(tmp_path, events())
    bundle = read_bundle(path)
    runs.show_main([str(path)])
    plain = printed(PlainPrinter, events())
    report = view_step(bundle.steps[0], 1)["hit"]
    for text in (capsys.readouterr().out, plain, report, view_of(bundle).rows[-1].hit):
        assert "check box “Dark" in text
    for text in (plain, report):
        assert "\u202e" not in text


def test_a_drag_shows_both_ends(tmp_path: Path) -> None:
    both = (replace(BOX, role="icon", name="report.txt"), replace(BOX, role="icon", name="Trash", states=frozenset()))
    [kept] = read_bundle(record(tmp_path, events(both))).steps
    assert kept.actions[0].hit == "icon “report.txt” (checked) → icon “Trash”"
