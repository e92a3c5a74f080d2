"""Tools act outside of the desktop: they are judged like actions that touch it."""

from pathlib import Path

import pytest
from stubs.judging import SHIPPED, own, rule

from agent.core.actions import CallTool, OpenApp
from agent.safety.policy import Grants, Policy
from agent.safety.question_text import asked
from foundation.errors import UsageError

READ = CallTool("read_file", {"path": "/etc/hosts"})


def tools(rest: str, name: str = "n") -> str:
    return rule("call_tool", rest, name)


def test_every_tool_is_asked_about_by_default(tmp_path: Path) -> None:
    for policy in (
        SHIPPED,
        Policy.load("ask"),
        own(tmp_path, rule("hold")),
    ):
        question = policy.question(READ)
        assert question is not None
    assert Policy.load("never").question(READ) is None


def test_a_rule_excepts_tools_by_name(tmp_path: Path) -> None:
    policy = own(tmp_path, tools('except = ["read_*"]'))
    assert policy.question(READ) is None
    assert policy.question(CallTool("READ_mail")) is None
    question = policy.question(CallTool("write_file"))
    assert question is not None
    assert "rule “n”" in question.reason
    asking = own(tmp_path, tools('except = ["read_*"]'), "ask").question(READ)
    assert asking is not None
    assert asking.reason == "every action is to be approved"


def test_a_tool_that_no_pattern_names_is_still_asked_about(tmp_path: Path) -> None:
    policy = own(tmp_path, tools('patterns = ["mail"]\nexcept = ["list_mail"]'))
    named, other = policy.question(CallTool("send_mail")), policy.question(READ)
    assert named is not None and "rule “n”" in named.reason
    assert other is not None and "no rule excepts" in other.reason
    assert policy.question(CallTool("list_mail")) is None


def test_one_rule_that_excepts_a_tool_does_not_silence_another(tmp_path: Path) -> None:
    policy = own(tmp_path, tools('except = ["read_*"]') + tools('patterns = ["file"]', "files"))
    question = policy.question(READ)
    assert question is not None
    assert "rule “files”" in question.reason


def test_what_is_allowed_of_a_tool_names_it_and_holds_for_no_other() -> None:
    policy, grants = SHIPPED, Grants()
    question = policy.question(READ)
    assert question is not None
    assert question.scope == "calling the tool “read_file”, with any arguments, for the rest of the run"
    grants.add(question)
    again, other = policy.question(CallTool("read_file", {"path": "/"})), policy.question(CallTool("write_file"))
    assert again is not None and grants.allow(again)
    assert other is not None and not grants.allow(other)


def test_a_rule_may_forbid_to_allow_a_tool_for_good(tmp_path: Path) -> None:
    question = own(tmp_path, tools("always = false")).question(READ)
    assert question is not None
    assert question.scope == ""


def test_what_excepts_an_application_excepts_no_tool(tmp_path: Path) -> None:
    policy = own(tmp_path, rule("open", 'except = ["read_file"]'))
    assert policy.question(OpenApp("read_file")) is None
    assert policy.question(READ) is not None


def test_allowed_windows_say_nothing_about_tools(tmp_path: Path) -> None:
    assert own(tmp_path, tools('except = ["*"]') + "[allowed]\nwindows = ['x']\n").question(READ) is None


@pytest.mark.parametrize("condition", ["windows", "words"])
def test_a_tool_has_neither_window_nor_words(tmp_path: Path, condition: str) -> None:
    with pytest.raises(UsageError, match="say nothing about the action 'call_tool'"):
        own(tmp_path, tools(f'{condition} = ["x"]'))


def test_what_is_approved_of_a_tool_is_seen_whole() -> None:
    question = SHIPPED.question(READ)
    assert question is not None
    told = asked(READ, question)
    assert told.what == "call the tool “read_file”"
    assert told.text == '{\n "path": "/etc/hosts"\n}'
