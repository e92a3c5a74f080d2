"""What is pressed into a password field key by key is masked as what is typed there is, and nothing else by it."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from stubs.endpoint import act
from stubs.events import finished, started, step
from stubs.events import printed as printed_by
from stubs.events import record as record_events

from agent.commands import runs
from agent.console.printers import JsonPrinter, PlainPrinter
from agent.core.actions import Action, KeyDown, KeyUp, PressKeys, TypeText, describe
from agent.core.geometry import DesktopPoint, Region
from agent.events.run_events import Acted, ApprovalAsked, ApprovalGiven, Decided, Event, StepFinished
from agent.families.registry import get_family
from agent.record.read import read_bundle
from agent.record.redactor import MASK, Redactor, Rules
from agent.record.replay import replay
from agent.record.report.view import view_step
from agent.safety.policy import Policy
from agent.screen.outline import Element

FIELD = Element(3, "password text", "Password", Region(0, 0, 9, 9))
ENTRY = replace(FIELD, role="text", name="Name")


def pressed(
    number: int, raw: str, *keys: Action[DesktopPoint], element: Element = FIELD, reason: str = "", thought: str = "On."
) -> list[Event]:
    """A step in which keys are pressed, each an action."""
    seen, delta, decided, *_ = step(number)
    assert isinstance(decided, Decided)
    told: list[Event] = [
        seen, replace(delta, text=raw),
        replace(decided, raw=raw, thought=thought, actions=keys, targets=keys, calls=()),
    ]  # fmt: skip
    for index, key in enumerate(keys):
        if reason:
            told += [
                ApprovalAsked(number, key, reason, index=index),
                ApprovalGiven(number, True, "you", index=index),
            ]
        hit = () if isinstance(key, KeyUp) else (element,)
        told.append(Acted(number, key, True, False, describe(key), None, 2.0, elements=hit, index=index))
    return [*told, StepFinished(number, True, f"You did: {describe(keys[0])}.", None, {})]


def spelled(word: str) -> list[list[Event]]:
    """A step for each letter of a word."""
    return [
        pressed(number, act("key", f"The letter {one} comes now.", keys=[one]), PressKeys((one,)))
        for number, one in enumerate(word, 1)
    ]


def record(runs: Path, steps: Sequence[list[Event]], redactor: Redactor | None = None) -> Path:
    told = [event for events in steps for event in events]
    return record_events(runs, [started(), *told, finished(steps=len(steps))], "log in", redactor)


def printed(printer: type[JsonPrinter] | type[PlainPrinter], steps: Sequence[list[Event]]) -> list[str]:
    return printed_by(printer, (event for events in steps for event in events)).splitlines()


def letters_in(text: str) -> set[str]:
    """The letters and digits that stand alone in a text, beside masks."""
    return set(re.findall(r"(?<![\w/.\\-])\w(?![\w/.-])", MASK.sub("", text)))


def test_letters_that_are_pressed_into_a_password_field_are_not_on_the_disk(tmp_path: Path, capsys) -> None:
    path = record(tmp_path, spelled("hunter2"))
    lines = (path / "steps.jsonl").read_text()
    kept = read_bundle(path).steps
    assert kept[0].actions[0].target == {"type": "key", "keys": ["[redacted 1 chars]"]}
    assert kept[0].actions[0].detail == "press [redacted 1 chars]"
    assert kept[0].note == "You did: press [redacted 1 chars]."
    assert "letter [redacted 1 chars] comes" in kept[0].answers[0].raw
    assert all((path / image.file).is_file() for one in kept for image in one.images)
    runs.show_main([str(path)])
    report = "".join(str(view_step(one, number)) for number, one in enumerate(kept, 1))
    for text in (lines, capsys.readouterr().out, report):
        assert not letters_in(text) & set("huntr")
        assert '"2"' not in text
        assert "press 2" not in text


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        ("hotkey(key='h')", "h"), ("pyautogui.press('H')", "h"), ("xdotool key h", "h"), ("key: shift+h", "h"),
        ('{"keys": ["KeyH"]}', "h"), ("I press h.", "h"), ("<key>h</key>", "h"), ("press(Digit5)", "5"),
        ("press('numpad5')", "kp_5"), ('{"key": "exclam"}', "!"), ("press('!')", "!"), ("press ! now", "!"),
        ("hotkey(key='space')", "space"), ('{"a": "{\\"keys\\": [\\"h\\"]}"}', "h"), ("press ä", "Ä"),
    ],
)  # fmt: skip
def test_the_answer_does_not_tell_the_key_however_it_is_spelled(raw: str, key: str) -> None:
    told = {"step": 1, "raw": raw, "target": {"type": "key", "keys": [key]}, "elements": [{"role": "password text"}]}
    masked = Redactor().data(told)["raw"]
    assert "[redacted 1 chars]" in masked
    rest = MASK.sub("", masked)
    assert not re.search(rf"(?<!\w)(?:{re.escape(key)}|h|5|KeyH|Digit5|numpad5|exclam|!)(?!\w)", rest, re.IGNORECASE)


@pytest.mark.parametrize("printer", [JsonPrinter, PlainPrinter])
def test_printed_lines_do_not_tell_the_letters(printer: type[JsonPrinter] | type[PlainPrinter]) -> None:
    one_answer = pressed(
        8, act("key", keys="q"), PressKeys(("q",)), PressKeys(("shift", "w")), KeyDown(("x",)), KeyUp(("x",))
    )
    lines = printed(printer, [*spelled("hunt"), one_answer])
    assert not letters_in("\n".join(lines)) & set("huntqwx")
    assert any("[redacted 1 chars]" in line for line in lines)


@pytest.mark.parametrize("printer", [JsonPrinter, PlainPrinter])
def test_what_a_later_step_presses_elsewhere_is_told_as_it_is(
    printer: type[JsonPrinter] | type[PlainPrinter], tmp_path: Path
) -> None:
    elsewhere = [
        pressed(5, act("key", keys=["ctrl", "h"]), PressKeys(("ctrl", "h")), thought="I press ctrl+h."),
        pressed(6, act("key", keys=["u"]), PressKeys(("u",)), element=ENTRY),
    ]
    steps = [*spelled("hunt"), *elsewhere]
    text = "\n".join(printed(printer, steps))
    assert "press ctrl+h" in text or '"keys":["ctrl","h"]' in text.replace(" ", "")
    kept = read_bundle(record(tmp_path, steps)).steps
    assert [one.target for one in kept[4:]] == [{"type": "key", "keys": ["ctrl", "h"]}, {"type": "key", "keys": ["u"]}]
    assert kept[4].thought == "I press ctrl+h."


def test_keys_that_enter_nothing_are_told(tmp_path: Path) -> None:
    keys = [("enter",), ("tab",), ("backspace",), ("ctrl", "a"), ("left",)]
    [kept] = read_bundle(record(tmp_path, [pressed(1, "x", *map(PressKeys, keys))])).steps
    assert [(one.target or {})["keys"] for one in kept.actions] == [list(one) for one in keys]


def test_a_prompt_for_a_password_is_known_by_why_the_policy_asks(tmp_path: Path) -> None:
    reason = "this answers a prompt for a password (rule “password prompt”)"
    asked = record(tmp_path / "a", [pressed(1, act("key", keys="h"), PressKeys(("h",)), element=ENTRY, reason=reason)])
    assert "h" not in letters_in((asked / "steps.jsonl").read_text())
    plain = record(tmp_path / "b", [pressed(1, act("key", keys="h"), PressKeys(("h",)), element=ENTRY)])
    assert "h" in letters_in((plain / "steps.jsonl").read_text())


def test_letters_are_masked_when_the_model_says_that_it_types_a_password(tmp_path: Path) -> None:
    thought = "I type the first letter of the password."
    said = pressed(1, act("key", thought, keys="h"), PressKeys(("h",)), element=ENTRY, thought=thought)
    assert "h" not in letters_in((record(tmp_path, [said]) / "steps.jsonl").read_text())


def test_the_word_that_the_letters_spell_is_masked_everywhere_and_counts_as_one_secret(tmp_path: Path) -> None:
    before = pressed(1, "x", PressKeys(("enter",)), thought="They say it is hunter.")
    letters = [
        pressed(number, "x", PressKeys((one,)), thought="So far hunt stands there." if one == "e" else "On.")
        for number, one in enumerate("hunter", 2)
    ]
    after = pressed(9, "x", TypeText("Ada"), element=ENTRY, thought="Now hunter is typed.")
    bundle = read_bundle(record(tmp_path, [before, *letters, after]))
    told = "".join(str(one.thought) for one in bundle.steps)
    assert "hunt" not in told
    assert bundle.run.masked == 1


def test_the_release_of_such_a_key_is_masked_in_a_later_step_too(tmp_path: Path) -> None:
    steps = [pressed(1, "press(key='h')", KeyDown(("h",))), pressed(2, "release(key='h')", KeyUp(("h",)))]
    assert "h" not in letters_in((record(tmp_path, steps) / "steps.jsonl").read_text())


@pytest.mark.parametrize(
    ("family", "raw"),
    [
        ("mai-ui", act("key", keys=["h"])), ("mai-ui", act("key", keys="shift+h")),
        ("ui-tars-1.5", "Thought: On.\nAction: hotkey(key='h')"),
        ("opencua", "## Action:\nOn.\n\n## Code:\n```python\npyautogui.press('h')\n```"),
        ("qwen3-vl", act("key", keys=["h"]).replace("mobile_use", "computer_use")),
    ],
)  # fmt: skip
def test_a_replay_says_that_a_key_was_masked_and_presses_nothing(tmp_path: Path, family: str, raw: str) -> None:
    steps = [pressed(1, raw, PressKeys(("h",)))]
    [unmasked] = replay(
        read_bundle(record(tmp_path / "plain", steps, Redactor(Rules()))), get_family(family), Policy.load("never")
    )
    assert isinstance(unmasked.target, PressKeys)
    [told] = replay(read_bundle(record(tmp_path / "masked", steps)), get_family(family), Policy.load("never"))
    assert (told.target, told.failure) == (None, "its text was masked when the run was recorded")
    assert told.same


def test_masking_a_run_again_changes_nothing() -> None:
    told = {
        "step": 1, "raw": "press('5')", "detail": "press 5", "elements": [{"role": "password text"}],
        "target": {"type": "key", "keys": ["5"]}, "images": [{"file": "screens/0001-5.png"}],
    }  # fmt: skip
    redactor = Redactor()
    once = redactor.data(told)
    assert once["images"] == told["images"]
    assert redactor.data(once) == once
    assert json.dumps(once).count("[redacted 1 chars]") == 3
