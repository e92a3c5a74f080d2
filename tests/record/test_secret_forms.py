"""What is typed into a password field is masked in every form that a bundle may hold it in, whatever the syntax."""

import html
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stubs.events import finished, printed, record, started, step

from agent.cli import main
from agent.console.printers import JsonPrinter
from agent.core.actions import TypeText
from agent.core.geometry import Region
from agent.events.run_events import Acted, ApprovalAsked, ApprovalGiven, Decided, Event, StepFinished
from agent.record.redactor import Redactor
from agent.screen.outline import Element

FIELD = Element(3, "password text", "Password", Region(0, 0, 9, 9))
ENTRY = replace(FIELD, role="text", name="Name")
SECRETS = ["hunter", 'it\'s "mine"', "a<b>&c/d e", "zwölf\\drei", "tab\there", "日本 & 'x'"]


def written(secret: str) -> list[str]:
    """The secret as answers of several families hold it."""
    return [
        json.dumps({"name": "mobile_use", "arguments": {"action": "type", "text": secret}}),
        json.dumps({"function": "type", "arguments": json.dumps({"content": secret})}),
        f"type(content={secret!r})",
        f"Action: type(content='{secret}')",
        f"pyautogui.write({secret!r}, interval=0.1)",
        f"<parameter=text>\n{html.escape(secret)}\n</parameter>",
        f"<text>{html.escape(secret, quote=False)}</text>",
        f"https://x.example/?p={quote(secret, safe='')}&q={quote_plus(secret)}",
        secret.encode("unicode_escape").decode(),
    ]


@pytest.mark.parametrize("separator", ["', '", '","'])
def test_a_secret_that_is_spelled_key_by_key_is_masked_too(separator: str) -> None:
    redactor = Redactor(secrets=["hunter22"])
    assert separator.join("hunter22") not in redactor.text(f"press([{separator.join('hunter22')}])")


def of_a_step(raw: str, secret: str, element: Element = FIELD, reason: str = "") -> list[Event]:
    """A step in which the text is typed into an element."""
    target = TypeText(secret)
    events: list[Event] = []
    for event in step(1):
        match event:
            case Decided():
                told = replace(event, raw=raw, thought="I go on.", actions=(target,), targets=(target,), calls=())
                events.append(told)
                events += [ApprovalAsked(1, target, reason), ApprovalGiven(1, True, "you")] if reason else []
            case Acted():
                events.append(replace(event, target=target, elements=(element,), detail=f"type “{secret}”"))
            case StepFinished():
                events.append(replace(event, note=f"The person changed your action: type “{secret}”."))
            case _:
                events.append(event)
    return events


def on_disk(runs: Path, events: list[Event]) -> str:
    path = record(runs, [started(), *events, finished(steps=1)], "log in")
    return "".join((path / name).read_text(encoding="utf-8") for name in ("run.json", "steps.jsonl"))


@pytest.mark.parametrize("secret", SECRETS)
def test_what_is_typed_into_a_password_field_is_in_no_form_on_the_disk(tmp_path: Path, secret: str) -> None:
    for number, raw in enumerate(written(secret)):
        kept = on_disk(tmp_path / str(number), of_a_step(raw, secret))
        assert "[redacted" in kept
        for form in (secret, *written(secret)):
            assert form not in kept
            assert json.dumps(form)[1:-1] not in kept
            assert json.dumps(form, ensure_ascii=False)[1:-1] not in kept
        for piece in (quote(secret, safe=""), html.escape(secret), repr(secret)[1:-1]):
            assert json.dumps(piece)[1:-1] not in kept


def test_what_the_policy_calls_a_password_is_masked_wherever_it_is_typed(tmp_path: Path) -> None:
    reason = "this answers a prompt for a password (rule “password prompt”)"
    assert "hunter" not in on_disk(tmp_path / "a", of_a_step("type(content='hunter')", "hunter", ENTRY, reason))
    assert "hunter" in on_disk(tmp_path / "b", of_a_step("type(content='hunter')", "hunter", ENTRY))


def test_a_pin_of_three_digits_is_masked_where_it_was_typed(tmp_path: Path) -> None:
    kept = on_disk(tmp_path, of_a_step("type(content='417')", "417"))
    assert "'417'" not in kept
    assert '"417"' not in kept
    assert "“417”" not in kept


def test_a_password_in_an_answer_that_cannot_be_read_is_masked_too() -> None:
    answer = {"answers": [{"raw": "do type(content='Tr0ub4dor&3') and then", "failure": {"kind": "no_action"}}]}
    assert "Tr0ub4dor" not in json.dumps(Redactor().data(answer))
    said = {"answers": [{"raw": "I type the password. type(content='plain words')", "failure": {"kind": "bad_json"}}]}
    assert "plain words" not in json.dumps(Redactor().data(said))


@settings(deadline=None)
@given(st.text(max_size=400), st.dictionaries(st.sampled_from(["raw", "text", "thought"]), st.text(max_size=60)))
def test_nothing_a_model_writes_makes_masking_fail(answer: str, more: dict[str, Any]) -> None:
    Redactor().data({"answers": [{"raw": answer}], **more})


def test_events_as_json_hold_what_is_typed_until_it_is_known_where_it_went() -> None:
    out = printed(JsonPrinter, [started(), *of_a_step("type(content='hunter')", "hunter"), finished(steps=1)])
    assert "hunter" not in out
    kinds = [json.loads(line)["event"] for line in out.splitlines()]
    assert kinds == [
        "RunStarted", "Observed", "ModelDelta", "Decided", "Acted", "StepFinished", "RunFinished",
    ]  # fmt: skip


def test_a_run_that_left_a_log_of_libraries_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = record(tmp_path, [started(), finished(steps=0)])
    (path / "output.log").write_text("Segmentation fault")
    assert main(["show", str(path)]) == 0
    assert f"what libraries printed: {path / 'output.log'}" in capsys.readouterr().out
