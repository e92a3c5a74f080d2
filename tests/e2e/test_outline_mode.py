"""A model without eyes does sentences on a real desktop, by the numbers of elements that are told as text.

The model is scripted: it knows the names of what it wants, and reads the numbers from the text of each request, as a
small text model would.
"""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from stubs.endpoint import Behaviour, Checks, Exchange, FakeEndpoint, pictures, say, texts

pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.timeout(180)]

MODEL = {"id": "tiny-instruct-2b", "object": "model", "owned_by": "other"}
LINE = re.compile(r'^(\d+) ([a-z ]+?)(?: "(.*?)")?(?: \([^)]*\))?(?: = ".*")?(?: \[[^\]]*\])? @ \d+,\d+$', re.MULTILINE)
#: Looking again until something is there is no loop; a program that never comes is.
TIMEOUT = 12


class TextModel:
    """Works through steps: what to open, what to click by its name; and waits for what is not there yet."""

    def __init__(self, *steps: tuple[str, str]) -> None:
        self._steps = list(steps)
        self._waited = 0

    def __call__(self, _number: int) -> Behaviour:
        def behave(exchange: Exchange) -> None:
            say(json.dumps(self._answer(exchange.body)))(exchange)

        return behave

    def _answer(self, body: dict[str, Any]) -> dict[str, Any]:
        assert not pictures(body), "it has no eyes"
        if not self._steps:
            return {"thought": "All is done.", "action": "finish", "status": "success", "text": "Done."}
        action, what = self._steps[0]
        place: dict[str, Any] = {}
        if action == "click":
            number = self._find(what, texts(body, "user")[-1])
            if number is None:
                self._waited += 1
                assert self._waited < TIMEOUT, f"{what} is not in {texts(body, 'user')[-1]}"
                return {"thought": f"{what} is not there yet.", "action": "wait", "seconds": 1}
            place = {"element": number}
        self._steps.pop(0)
        said = {"text": what} if action in ("open", "type") else {"keys": what} if action == "key" else {}
        return {"thought": f"I {action} {what}.", "action": action, **place, **said}

    @staticmethod
    def _find(name: str, told: str) -> int | None:
        """The number of what is called so, or begins so; of a control rather than of words that are only read."""
        called = [(match[3] or "", match[2], int(match[1])) for match in LINE.finditer(told)]
        found = [(other != name, role == "label", number) for other, role, number in called if other.startswith(name)]
        return min(found)[2] if found else None


@pytest.mark.parametrize(
    ("sentence", "steps", "where", "wanted"),
    [
        (
            "open settings and enable dark mode",
            [("open", "settings"), ("click", "Appearance"), ("click", "Adwaita-dark")],
            ("xsettings", "/Net/ThemeName"),
            "Adwaita-dark",
        ),
        (
            "open settings, click Window Manager Tweaks and enable Raise windows while cycling",
            [("open", "settings"), ("click", "Window Manager Tweaks"), ("click", "Raise windows while cycling")],
            ("xfwm4", "/general/cycle_raise"),
            "true",
        ),
        (
            "open Window Manager and click Daloa",
            [("open", "Window Manager"), ("click", "Daloa")],
            ("xfwm4", "/general/theme"),
            "Daloa",
        ),
        (
            "open Window Manager, click Focus and enable Automatically raise windows when they receive focus",
            [
                ("open", "Window Manager"),
                ("click", "Focus"),
                ("click", "Automatically raise windows when they receive focus"),
            ],
            ("xfwm4", "/general/raise_on_focus"),
            "true",
        ),
        (
            "open Window Manager, click the Advanced tab and check To other windows",
            [("open", "Window Manager"), ("click", "Advanced"), ("click", "To other windows")],
            ("xfwm4", "/general/snap_to_windows"),
            "true",
        ),
    ],
    ids=["dark", "cycle", "theme", "focus", "snap"],
)
def test_a_sentence_is_done_by_numbers_read_from_text(
    command: Callable[..., Any],
    kept: Callable[[Any], None],
    sentence: str,
    steps: list[tuple[str, str]],
    where: tuple[str, str],
    wanted: str,
) -> None:
    with FakeEndpoint(TextModel(*steps), models=[MODEL], checks=Checks(images=0)) as endpoint:
        outcome = command("--sandbox", "--keep", "--endpoint", endpoint.url, "--see", "outline", sentence, timeout=150)
    kept(outcome)
    assert outcome.status == 0, outcome.out + outcome.err
    assert "is unknown" in outcome.out + outcome.err
    channel, name = where
    assert outcome.inside("xfconf-query", "-c", channel, "-p", name).stdout.strip() == wanted
    assert outcome.meta["outcome"] == "done"
    assert not endpoint.checks.refusals
