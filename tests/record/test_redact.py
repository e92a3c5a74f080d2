"""Secrets do not reach the disk: found by rule or by name, masked wherever they occur."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stubs.desk import recorded
from stubs.endpoint import DONE, act

from agent.core.actions import TypeText, describe
from agent.families.registry import get_family
from agent.record.read import read_bundle
from agent.record.redactor import MASK, Redactor, Rules, is_masked
from agent.record.replay import replay
from agent.safety.policy import Policy

PASSWORD = "Tr0ub4dor&3"


def typed(text: str, thought: str = "") -> dict[str, Any]:
    action = {"type": "type", "text": text}
    return {
        "thought": thought, "answers": [{"raw": act("type", thought, text=text)}], "action": action, "target": action,
        "call": {"name": "mobile_use", "arguments": {"action": "type", "text": text}},
        "detail": describe(TypeText(text)), "note": f"You typed {text!r}.",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("password: hunter2", "password: [redacted 7 chars]"),
        ('{"password": "hunter2"}', '{"password": "[redacted 7 chars]"}'),
        ("API_KEY=abc123 next", "API_KEY=[redacted 6 chars] next"),
        ("the password is h8nter2", "the password is [redacted 7 chars]"),
        ('with the password "correct horse"', 'with the password "[redacted 13 chars]"'),
        ("use sk-abcdefghijklmnop1234", "use [redacted 23 chars]"),
        ("https://me:geheim@host/x", "https://me:[redacted 6 chars]@host/x"),
        ("Authorization: Bearer abcdef.ghijkl-123", "Authorization: Bearer [redacted 17 chars]"),
        ("pay with 4111 1111 1111 1111 now", "pay with [redacted 19 chars] now"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----!", "[redacted 65 chars]!"),
    ],
)
def test_what_looks_like_a_secret_is_masked(text: str, masked: str) -> None:
    assert Redactor().text(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "open settings and enable dark mode", "open the password manager", "click on “Forgot password?”",
        "The password field is empty; the token count is 2040.", "https://Example.com/A1?b=c",
        "the password is required", "1920x1080", "call +49 170 1234567", "Reset password: ",
        "C:\\Users\\Ada1", "Version 2.4.1-RC1",
    ],
)  # fmt: skip
def test_ordinary_texts_stay_as_they_are(text: str) -> None:
    redactor = Redactor()
    assert redactor.instruction(text) == text
    assert redactor.data(typed(text)) == typed(text)
    assert redactor.found == 0


def test_a_password_that_is_typed_is_masked_in_every_part_of_the_step_and_later() -> None:
    redactor = Redactor()
    step = redactor.data(typed(PASSWORD + "\n"))
    assert PASSWORD not in json.dumps(step)
    assert step["target"]["text"] == "[redacted 11 chars]\n"
    assert step["detail"] == "type “[redacted 11 chars]”"
    assert redactor.text(f"I typed {PASSWORD}.") == "I typed [redacted 11 chars]."


def test_a_text_is_masked_when_the_model_says_that_it_types_a_password() -> None:
    step = Redactor().data(typed("swordfish", "Now I enter the password into the field."))
    assert "swordfish" not in json.dumps(step)


def test_half_a_secret_does_not_stay_in_a_sentence_that_was_cut_off() -> None:
    text = "a line before it that is quite long, then password: " + "S3cret" * 10
    step = Redactor().data(typed(text))
    assert "S3cret" not in json.dumps(step)


@pytest.mark.parametrize("secret", ['qu"ote\\s4X!', "Zwölf&Boxk4mpfer", "tab\tin1A!x"])
def test_a_secret_is_masked_as_it_stands_in_json_that_a_model_wrote(secret: str) -> None:
    redactor = Redactor(secrets=[secret])
    for ascii_only in (True, False):
        raw = json.dumps({"text": secret}, ensure_ascii=ascii_only)
        assert (
            json.loads(redactor.text(raw))["text"]
            == f"[redacted {len(json.dumps(secret, ensure_ascii=ascii_only)) - 2} chars]"
        )


words = st.text(st.characters(categories=("L", "N", "P", "S", "Zs"), codec="utf-8"), min_size=1, max_size=30)


@given(words.filter(lambda secret: secret not in "[redacted 0123456789 chars]" and secret.strip()), words, words)
def test_no_named_secret_is_left_anywhere(secret: str, before: str, after: str) -> None:
    redactor = Redactor(Rules(), [secret])
    value = {"a": [before + secret + after, {"b": secret}], "raw": json.dumps({"x": before + secret}), "n": 5}
    masked = redactor.data(value)
    for text in (masked["a"][0], masked["a"][1]["b"], masked["raw"]):
        assert all(secret not in piece for piece in MASK.split(text))
        assert is_masked(text)
    assert redactor.data(masked) == masked
    assert masked["n"] == 5


@given(st.text(max_size=80))
def test_masking_never_fails_and_masking_twice_changes_nothing(text: str) -> None:
    redactor = Redactor()
    once = redactor.text(f"password: {text}")
    assert redactor.text(once) == once
    assert Redactor().text(once) == once


# In a run


def everything(path: Path) -> str:
    texts = [item.read_text() for item in path.iterdir() if item.is_file()]
    return "\n".join([path.name, *texts])


SCRIPT = [
    act("click", f"The password {PASSWORD} goes there.", coordinate=[1, 2]),
    act("type", text=PASSWORD),
    act("type", f"{PASSWORD} is typed; now the name.", text="Ada"),
    DONE,
]


async def test_a_run_with_a_password_leaves_none_on_the_disk(tmp_path: Path) -> None:
    path = await recorded(tmp_path, SCRIPT, f"log in as Ada with {PASSWORD}")
    assert PASSWORD not in everything(path)
    assert "tr0ub4dor" not in path.name
    bundle = read_bundle(path)
    assert bundle.run.instruction == "log in as Ada with [redacted 11 chars]"
    assert bundle.steps[1].target == {"type": "type", "text": "[redacted 11 chars]"}
    assert bundle.steps[2].target == {"type": "type", "text": "Ada"}


async def test_what_turns_out_to_be_a_password_later_is_masked_in_earlier_steps_too(tmp_path: Path) -> None:
    path = await recorded(tmp_path, SCRIPT, "log in as Ada")
    assert PASSWORD not in everything(path)
    bundle = read_bundle(path)
    assert [step.step for step in bundle.steps] == [1, 2, 3, 4]
    assert bundle.steps[0].thought == "The password [redacted 11 chars] goes there."
    assert sorted(item.name for item in path.iterdir()) == ["run.json", "screens", "steps.jsonl"]


async def test_masking_can_be_turned_off(tmp_path: Path) -> None:
    path = await recorded(tmp_path, SCRIPT, "log in", Redactor(Rules()))
    assert read_bundle(path).steps[1].target == {"type": "type", "text": PASSWORD}


async def test_a_replay_says_that_a_text_was_masked_and_does_not_type_the_mask(tmp_path: Path) -> None:
    bundle = read_bundle(await recorded(tmp_path, SCRIPT, f"log in with {PASSWORD}"))
    steps = list(replay(bundle, get_family("mai-ui"), Policy.load("never")))
    assert [step.target is None for step in steps] == [False, True, False, False]
    assert steps[1].failure == "its text was masked when the run was recorded"
    assert all(step.same for step in steps)


def asked(question: str, reply: str) -> dict[str, Any]:
    return {"step": 1, "target": {"type": "ask_user", "question": question}, "reply": reply, "note": f"said {reply}"}


def test_the_reply_to_a_question_for_a_password_is_masked() -> None:
    masked = Redactor().data(asked("What is your password?", "correcthorse"))
    assert masked["reply"] == "[redacted 12 chars]"
    assert "correcthorse" not in str(masked)


def test_the_reply_to_another_question_is_not() -> None:
    plain = asked("Which colour do you want?", "correcthorse")
    assert Redactor().data(plain) == plain


def test_a_secret_that_the_person_put_in_leaves_no_half_behind() -> None:
    secret = "sk-" + "a1B2" * 16
    step = {
        "target": {"type": "type", "text": "x"}, "approval": {"instead": {"type": "type", "text": secret}},
        "detail": describe(TypeText(secret)), "note": f"The person changed your action: {describe(TypeText(secret))}.",
    }  # fmt: skip
    assert secret[:20] not in str(Redactor().data(step))


@pytest.mark.parametrize(("secret", "masked_elsewhere"), [("k7!", False), ("k7!x", True), ("k7!x2", True)])
def test_a_found_secret_of_four_characters_or_more_is_masked_wherever_it_is(
    secret: str, masked_elsewhere: bool
) -> None:
    step = {"thought": "I type the password.", "target": {"type": "type", "text": secret}, "note": f"so {secret} it is"}
    masked = Redactor().data(step)
    assert (secret not in masked["note"]) is masked_elsewhere


def test_a_shortened_secret_is_masked_for_every_action_of_an_answer() -> None:
    redactor, secret = (
        Redactor(),
        "correct horse battery staple and many more words than any line of a list has room for",
    )
    click = {"type": "click", "point": [1, 2], "button": "left", "count": 1}
    decided = {
        "thought": "I enter the password.",
        "target": click,
        "targets": [click, {"type": "type", "text": secret}],
    }
    redactor.data(decided)
    assert "correct horse" not in redactor.text(f"decided: click at 1,2; {describe(TypeText(secret))}")
