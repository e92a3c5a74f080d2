"""What of the desktop a model on another machine gets to see that helps out."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from stubs.endpoint import Exchange, act, pictures, say
from stubs.made_up_desktop import REGIONS
from stubs.two_models import BLACK, CLICK, GIVE_UP, OTHER, OVER, SECRET, WHITE, YES, go

from agent.core.geometry import Region
from agent.events.run_events import Acted, Warned
from agent.record.bundle import Recorder
from agent.record.redactor import Redactor
from agent.safety.policy import Policy
from agent.safety.policy_rules.policy_file import Leaving
from agent.screen.outline import Element


class TestWhatLeaves:
    async def test_a_hidden_window_and_a_hidden_region_are_black_in_what_is_sent(self) -> None:
        leaving = YES | {"hide": [{"app": "^editor$"}], "regions": [[0, 0, 32, 32]]}
        ran = await go([GIVE_UP], [OTHER, OVER], far=True, leaving=leaving)
        for request in (0, 1):
            sent = ran.picture(request)
            assert sent.getpixel((10, 10)) == BLACK, "the region"
            assert sent.getpixel((40, 200)) == WHITE, "the other window"
            assert sent.getpixel((150, 230)) == BLACK, "the hidden window"

    async def test_for_a_model_on_this_machine_nothing_is_hidden(self) -> None:
        ran = await go([GIVE_UP], [OVER], leaving={"hide": [{"app": "editor"}], "regions": [[0, 0, 32, 32]]})
        assert ran.picture().getpixel((10, 10)) == WHITE
        assert ran.picture().getpixel((150, 230)) == WHITE

    async def test_what_is_in_the_bundle_is_what_was_sent(self, tmp_path: Path) -> None:
        recorder = Recorder(tmp_path, "do the task")
        ran = await go(
            [GIVE_UP], [OVER], far=True, leaving=YES | {"hide": [{"title": "untitled"}]},
            bundle=str(recorder.path), watch=recorder.handle,
        )  # fmt: skip
        url = pictures(ran.relief.requests[0])[-1]["image_url"]["url"]
        kept = (recorder.path / "screens" / "0002.png").read_bytes()
        assert base64.b64decode(url.partition(",")[2]) == kept

    async def test_their_elements_and_the_windows_are_not_told_of(self) -> None:
        elements = (
            Element(1, "push button", "Visible", Region(10, 150, 40, 20), app="Term", window="mai-agent"),
            Element(2, "push button", "Of the editor", Region(100, 150, 40, 20), app="Editor", window="Untitled"),
            Element(3, "push button", "In the region", Region(20, 20, 40, 20), app="Term", window="mai-agent"),
            Element(4, "push button", "Untitled - Editor", Region(10, 200, 40, 20), app="Panel", window="panel"),
        )
        leaving = YES | {"hide": [{"app": "editor"}], "regions": [[0, 0, 32, 32]]}
        over = say('{"thought": "t", "action": "done", "answer": "ok"}')
        ran = await go([GIVE_UP, GIVE_UP], [over] * 3, far=True, leaving=leaving, elements=elements, family="generic")
        whole = json.dumps(ran.relief.requests[0])
        assert "Visible" in whole
        for hidden in ("Of the editor", "In the region", "Untitled"):
            assert hidden not in whole

    async def test_a_field_for_passwords_is_black(self) -> None:
        field = Element(1, "password text", "Password", Region(100, 100, 60, 20), value="swordfish")
        ran = await go([GIVE_UP], [OVER], far=True, leaving=YES, elements=(field,))
        assert ran.picture().getpixel((130, 110)) == BLACK
        assert ran.picture().getpixel((130, 140)) == WHITE

    async def test_what_was_done_in_a_hidden_window_is_not_told(self) -> None:
        typing = say(act("type", text="dear diary"))
        leaving = YES | {"hide": [{"app": "editor"}]}
        ran = await go([typing, GIVE_UP], [OVER], far=True, leaving=leaving)
        whole = json.dumps(ran.relief.requests[0])
        assert "dear diary" not in whole
        assert "that you are not shown" in whole

    async def test_an_error_does_not_quote_a_hidden_window(self) -> None:
        def moved(exchange: Exchange) -> None:
            REGIONS["right"] = Region(80, 0, 176, 256)
            CLICK(exchange)

        before = REGIONS["right"]
        try:
            ran = await go([GIVE_UP], [moved, OVER], far=True, leaving=YES | {"hide": [{"app": "editor"}]})
        finally:
            REGIONS["right"] = before
        acted = ran.told(Acted)
        assert "Untitled" in str(acted[0].error)
        whole = json.dumps(ran.relief.requests[1])
        assert "That could not be done: it failed." in whole
        assert "Untitled" not in whole

    async def test_no_text_that_is_sent_holds_a_secret(self) -> None:
        mask = Redactor(secrets=[SECRET]).text
        own = [say(act("type", text=SECRET)), GIVE_UP]
        again = say(act("type", f"I type {SECRET}.", text=SECRET))
        ran = await go(own, [again, OVER], far=True, leaving=YES, mask=mask, instruction=f"log in with {SECRET} please")
        assert len(ran.relief.requests) == 2
        for request in ran.relief.requests:
            assert SECRET not in json.dumps(request)
            assert "[redacted" in json.dumps(request)

    async def test_where_windows_are_to_be_hidden_and_nobody_tells_of_them_nothing_is_sent(self) -> None:
        leaving = YES | {"hide": [{"app": "editor"}]}
        ran = await go([GIVE_UP], [], far=True, leaving=leaving, windows=False)
        assert ran.relief.requests == []
        assert ran.end.outcome == "gave_up"
        assert any("may not see the screen" in event.message for event in ran.told(Warned))


@pytest.mark.parametrize(
    "wrong", [{"hide": [{}]}, {"screenshots": "maybe"}, {"regions": [[0, 0, 0, 1]]}, {"hidden": []}]
)
def test_what_may_leave_is_written_in_one_way(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        Leaving.model_validate(wrong)


def test_nothing_leaves_by_default() -> None:
    assert Policy.load("risky").leaving.screenshots == "never"
