"""Answers in code are read as data: no piece of code is ever run, and none makes the reader raise."""

import random
from pathlib import Path

import pytest

from agent.families.base import Call, ParseFailure, PastStep, PromptRequest
from agent.families.registry import get_family
from agent.families.shared.code_calls import as_code, code_calls, last_block
from foundation.chat_stream import Answer


@pytest.mark.parametrize(
    ("code", "calls"),
    [
        ("pyautogui.click(1, 2)", [Call("pyautogui.click", {"x": 1, "y": 2})]),
        ("click(x=-1.5, y=+2)", [Call("click", {"x": -1.5, "y": 2})]),
        ("pyautogui.hotkey('ctrl', 'c')", [Call("pyautogui.hotkey", {"keys": ["ctrl", "c"]})]),
        ("import time, pyautogui\ntime.sleep(1)  # a moment", [Call("time.sleep", {"seconds": 1})]),
        ("pyautogui.write('a'); pyautogui.press('tab')",
         [Call("pyautogui.write", {"message": "a"}), Call("pyautogui.press", {"keys": "tab"})]),
        ("pyautogui.write('''two\nlines''')", [Call("pyautogui.write", {"message": "two\nlines"})]),
        ("computer.terminate(status='success')", [Call("computer.terminate", {"status": "success"})]),
        ("DONE", [Call("DONE", {})]),
        ("pyautogui.press(['up', 'enter'])", [Call("pyautogui.press", {"keys": ["up", "enter"]})]),
    ],
)  # fmt: skip
def test_calls_with_plain_values_are_read_in_order(code: str, calls: list[Call]) -> None:
    assert code_calls(code) == calls
    block = last_block(as_code(calls))
    assert isinstance(block, str)
    assert code_calls(block) == calls


@pytest.mark.parametrize(
    "code",
    [
        "open({path!r}, 'w').close()",
        "pyautogui.write(open({path!r}, 'w').name)",
        "pyautogui.write(f'{{open({path!r}, chr(119))}}')",
        "[open({path!r}, 'w') for _ in (1,)]",
        "import os\nos.system('touch ' + {path!r})",
        "from pathlib import Path\nPath({path!r}).touch()",
        "pyautogui.click(*[open({path!r}, 'w')])",
        "pyautogui.click(**dict(x=open({path!r}, 'w')))",
        "getattr(pyautogui, 'click')(1, 2)",
        "pyautogui.click.__call__(1, 2)",
        "x = pyautogui.click(1, 2)",
        "if True:\n    pyautogui.click(1, 2)",
        "import pyautogui as p\np.click(1, 2)\nq",
        "def f(a=open({path!r}, 'w')): pass",
        "'text'",
        "pyautogui",
    ],
)
def test_anything_else_spoils_the_code_and_nothing_is_run(code: str, tmp_path: Path) -> None:
    path = tmp_path / "made"
    result = code_calls(code.format(path=str(path)))
    assert isinstance(result, ParseFailure)
    assert not path.exists()


PIECES = [
    "pyautogui.", "click", "(", ")", "x=", "1", "-", "'", '"', ",", "\n", "[", "]", "*", "computer.wait()", "```",
    "```python\n", "#", "\\", "\0", "\ud800", "é", "lambda: ", "0x", "1e999", "press('a')", "  ", ":", "import time",
    "await ", "f'{", "}'",
]  # fmt: skip


def test_no_code_makes_the_reader_raise() -> None:
    for seed in range(6000):
        dice = random.Random(seed)
        text = "".join(dice.choices(PIECES, k=dice.randrange(24)))
        for result in (code_calls(text), last_block(text)):
            assert isinstance(result, ParseFailure) or result is not None


@pytest.mark.parametrize("piece", ["(", "[", "-", "a.", "f(", "not ", "pyautogui.press('a')\n", "\\\n", "'" * 3, "```"])
def test_deep_and_long_code_is_refused(piece: str) -> None:
    for length in (1_000, 19_000, 190_000):
        text = (piece * length)[:length]
        assert isinstance(code_calls(text), ParseFailure)
        last_block(text)


def test_what_came_back_stands_before_the_next_screenshot_and_the_task_after_it() -> None:
    steps = [
        PastStep("a", (Call("pyautogui.press", {"keys": "a"}),), (None,), shown, note=note)
        for shown, note in ((False, "Not yet."), (True, "Nothing changed."))
    ]
    request = get_family("opencua").request(PromptRequest("Do it.", (None,), steps))
    told = [[getattr(part, "text", "IMAGE") for part in message.parts] for message in request.messages[1:]]
    assert told[0] == ["# Step 1:\n## Action:\npyautogui.press(keys='a')\n"]
    assert told[1] == ["IMAGE", "Not yet."]
    assert told[3][:2] == ["IMAGE", "Nothing changed."]
    assert told[3][2].startswith("# Task Instruction:\nDo it.\n")


def test_thinking_that_the_server_told_apart_comes_back_in_kimis_own_tags() -> None:
    answer = Answer("## Action:\nPress it.\n## Code:\n```python\npyautogui.press('a')\n```", "The key does it.")
    step = PastStep("x", (Call("pyautogui.press", {"keys": "a"}),), answer=answer)
    texts = list(get_family("kimi").request(PromptRequest("Do it.", (None,), (step,))).texts())
    assert texts[1] == "# Step 1:\n◁think▷The key does it.◁/think▷## Action:\nPress it.\n"


def test_without_thinking_kimi_is_asked_for_a_thought_in_words_and_its_server_told_so() -> None:
    step = PastStep("a", (Call("pyautogui.press", {"keys": "a"}),))
    prompt = PromptRequest("Do it.", (None,), (step,), options={"style": "reference", "thinking": False})
    request = get_family("kimi").request(prompt)
    system, past = list(request.texts())[:2]
    assert "## Thought\n{thought}\n## Action:\n{action}" in system
    assert past.startswith("# Step 1:\n## Thought:\na\n\n## Action:\n")
    assert request.template_arguments == {"thinking": False}
    assert get_family("opencua").request(prompt).template_arguments == {}
