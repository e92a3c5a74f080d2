"""The HTML report: everything of a run in one file that is only data and our own script, whatever a model wrote."""

import base64
import hashlib
import html
import io
import json
import re
import stat
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from record.bundles import CLICK, a_bundle, a_step, noise, plain
from stubs.hostile import FORBIDDEN

from agent.core.actions import Click, Drag, Finish, Scroll, TypeText, describe, to_json
from agent.core.geometry import DesktopPoint
from agent.record.read import Bundle
from agent.record.records import read_action
from agent.record.redactor import Redactor
from agent.record.report.page import write_report
from agent.record.report.pictures import Pictures
from agent.record.report.view import view_run, view_step
from agent.record.step_record import StepRecord
from foundation.errors import EnvironmentLacksError, UsageError
from foundation.foreign_text import harmless


def page_of(bundle: Bundle, **options: Any) -> str:
    return write_report(bundle, **options).path.read_text(encoding="utf-8")


def data_of(page: str) -> dict[str, Any]:
    [block] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(block)


def picture(url: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))


def test_a_report_holds_the_run_and_every_step_in_words_and_in_both_coordinates(tmp_path: Path) -> None:
    data = data_of(page_of(a_bundle(tmp_path / "run", [a_step(1), a_step(2)])))
    assert data["run"]["instruction"] == "open settings"
    assert data["run"]["outcome"] == "done"
    assert dict(data["run"]["facts"]) == {
        "engine": "vllm", "model": "MAI-UI-8B", "family": "mai-ui", "steps": "2", "duration": "12.3 s",
        "tokens": "200 in, 40 out", "desktop": "this desktop", "approval": "risky",
    }  # fmt: skip
    step = data["steps"][1]
    assert (step["number"], step["title"], step["state"]) == (2, "click at 80,45", "done")
    assert step["thought"] == "Thought 2."
    assert step["answers"] == [{"raw": "answer 2", "failure": ""}]
    assert json.loads(step["model"])["point"] == [499.0, 499.0]
    assert json.loads(step["screen"])["point"] == [80.0, 45.0]
    assert step["marks"] == {"kind": "point", "points": [[0.5, 0.5]]}
    assert dict(zip(data["run"]["stages"], step["times"], strict=True)) == {
        "look": 20.0, "prompt": 0, "model": 800.0, "read": 0, "approval": 0, "act": 30.0, "settle": 500.0,
    }  # fmt: skip


def test_the_report_lies_in_the_bundle_and_nobody_else_may_read_it(tmp_path: Path) -> None:
    report = write_report(a_bundle(tmp_path / "run", [a_step(1)]))
    assert report.path == tmp_path / "run" / "report.html"
    assert stat.S_IMODE(report.path.stat().st_mode) == 0o600
    assert report.bytes == report.path.stat().st_size
    assert sorted(item.name for item in (tmp_path / "run").iterdir()) == [
        "report.html", "run.json", "screens", "steps.jsonl",
    ]  # fmt: skip


def test_attempts_approval_and_what_the_person_did_are_told(tmp_path: Path) -> None:
    step = a_step(
        1,
        before=[{"event": "PersonSaid", "text": "use the other window"}, {"event": "Paused", "reason": "you asked"}],
        answers=[{"raw": "junk", "failure": {"kind": "no_call", "message": "no call"}}, {"raw": "good"}],
        approval={"reason": "commands", "scope": "typing", "allowed": True, "by": "you", "note": "fine", "always": True,
                  "answer": "changed", "instead": CLICK | {"point": [16.0, 9.0]}, "milliseconds": 2000.0, "at": 3.5},
    )  # fmt: skip
    [shown] = data_of(page_of(a_bundle(tmp_path / "run", [step])))["steps"]
    assert shown["before"] == ["you said: use the other window", "paused: you asked"]
    assert shown["answers"] == [{"raw": "junk", "failure": "no call"}, {"raw": "good", "failure": ""}]
    [action] = shown["actions"]
    assert (action["proposed"], action["changed"], action["words"]) == ("click at 80,45", "click at 16,9", "done")
    assert action["approval"] == {
        "reason": "commands", "answer": "changed by you: “fine”", "changed_reason": "", "always": "typing", "at": 3.5,
        "milliseconds": 2000.0,
    }  # fmt: skip
    assert shown["marks"]["points"] == [[0.1, 0.1]]  # what was carried out, not what the model proposed
    assert shown["title"] == "click at 16,9"
    assert shown["times"][4] == 2000.0


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "done"),
        ({"executed": False, "dry_run": True}, "dry run"),
        ({"executed": False, "error": "it went away"}, "failed"),
        *(
            ({"executed": False, "fate": fate}, fate)
            for fate in ("refused", "told", "skipped", "overtaken", "left out")
        ),
        ({"executed": False, "fate": "unanswered"}, "unanswered"),
        ({"executed": False, "fate": "said"}, "said"),
        ({"executed": False, "target": None}, "broken off"),
    ],
)
def test_what_became_of_a_step_is_said(changes: dict[str, Any], state: str) -> None:
    assert view_step(StepRecord.model_validate(a_step(1, **changes)), 1)["state"] == state


def test_a_step_of_several_actions_shows_all_of_them() -> None:
    refused = {"reason": "closing keys", "allowed": False, "by": "you", "answer": "refused"}
    actions = [
        {"target": CLICK, "action": CLICK, "executed": True, "detail": "click at 80,45", "fate": "done"},
        {"target": {"type": "key", "keys": ["alt", "f4"]}, "approval": refused, "fate": "refused"},
    ]
    shown = view_step(StepRecord.model_validate(a_step(1, actions=actions)), 1)
    assert shown["title"] == "click at 80,45 · press alt+f4"
    assert (shown["state"], shown["detail"]) == ("refused", "click at 80,45")
    assert [(one["fate"], one["approval"] and one["approval"]["reason"]) for one in shown["actions"]] == [
        ("done", None), ("refused", "closing keys"),
    ]  # fmt: skip
    assert [target["type"] for target in json.loads(shown["screen"])] == ["click", "key"]
    assert shown["marks"] == {"kind": "point", "points": [[0.5, 0.5]]}


@pytest.mark.parametrize(
    ("target", "marks"),
    [
        ({"type": "drag", "start": [16, 9], "point": [80, 45]}, {"kind": "drag", "points": [[0.1, 0.1], [0.5, 0.5]]}),
        ({"type": "drag", "start": None, "point": [80, 45]}, {"kind": "drag", "points": [[0.5, 0.5]]}),
        (
            {"type": "scroll", "point": None, "dx": 0, "dy": 3},
            {"kind": "scroll", "points": [[0.5, 0.5]], "way": [0, 1]},
        ),
        (
            {"type": "scroll", "point": [0, 90], "dx": -2, "dy": 0},
            {"kind": "scroll", "points": [[0, 1]], "way": [-1, 0]},
        ),
        ({"type": "key", "keys": ["enter"]}, None),
    ],
)
def test_targets_are_marked_in_shares_of_the_picture(target: dict[str, Any], marks: Any) -> None:
    assert view_step(StepRecord.model_validate(a_step(1, target=target)), 1)["marks"] == marks


def test_a_mark_counts_from_the_monitor_that_was_captured() -> None:
    view = {"left": -1280, "top": 200, "width": 1280, "height": 800, "captured_width": 2560, "captured_height": 1600}
    shown = view_step(StepRecord.model_validate(a_step(1, viewport=view, target=CLICK | {"point": [-640, 400]})), 1)
    assert shown["marks"]["points"] == [[0.5, 0.25]]


def test_the_place_that_was_proposed_is_told_where_the_person_changed_it() -> None:
    asked = {"reason": "a rule", "allowed": True, "by": "you", "instead": CLICK | {"point": [40.0, 18.0]}}
    shown = view_step(StepRecord.model_validate(a_step(1, approval=asked)), 1)
    assert (shown["marks"]["points"], shown["proposed"]["points"]) == ([[0.25, 0.2]], [[0.5, 0.5]])
    assert view_step(StepRecord.model_validate(a_step(1)), 1)["proposed"] is None


def test_the_field_that_got_what_was_typed_is_marked() -> None:
    field = {"left": 40, "top": 18, "width": 80, "height": 9}
    typed = a_step(1, target={"type": "type", "text": "hello"}, aim={"names": ["“Name”"], "window": "", "field": field})
    assert view_step(StepRecord.model_validate(typed), 1)["marks"] == {
        "kind": "field", "points": [[0.5, 0.25]], "box": [0.25, 0.2, 0.5, 0.1],
    }  # fmt: skip


# Nothing but data, whatever it says

HOSTILE = [
    "</script><img src=x onerror=alert(1)>", "<!--<script>", "]]>", "{{SCRIPT}}", "{{DATA}}", "&lt;b&gt;",
    "\u2028\u2029", "\x00\x1b[31m", "invoice\u202egnp.exe", "\x9b\u2066\u200f\u061c\u200b\U000e0041", "\ud800",
    "'\"`${alert(1)}", "</title><script>alert(1)</script>",
]  # fmt: skip


#: A picture of ours in the part for browsers without scripts: nothing in it comes from anybody else.
OUR_IMAGE = re.compile(r'<img alt="" src="data:image/(?:jpeg|png|webp);base64,[A-Za-z0-9+/=]+">')


def plain_part(page: str) -> str:
    [part] = re.findall(r'<noscript>(<section id="plain">.*?)</noscript>', page, re.DOTALL)
    return part


def tags_of(part: str) -> set[str]:
    """The tags that a browser finds in it; none has an attribute that does something."""
    found: set[str] = set()

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert {name for name, _ in attrs} <= {"class", "id", "alt", "src"}
            found.add(tag)

    Reader().feed(part)
    return found


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(tmp_path: Path, text: str) -> None:
    step = a_step(
        1, thought=text, answers=[{"raw": text, "failure": {"message": text}}], note=text, reply=text, error=text,
        detail=text, before=[{"event": "PersonSaid", "text": text}],
        call={text: text}, target={"type": "type", "text": text},
        approval={"reason": text, "by": text, "allowed": True, "note": text}, milliseconds={text: 4.0, "model": 5.0},
    )  # fmt: skip
    bundle = a_bundle(tmp_path / "run", [step], instruction=text, message=text, warnings=[text], model=text, id=text)
    page = page_of(bundle)
    assert page.count("<script") == page.count("</script>") == 2
    assert "<img" not in OUR_IMAGE.sub("", page)
    assert tags_of(plain_part(page)) <= {"section", "p", "h2", "ul", "ol", "li", "div", "img"}
    assert "alert(1)>" not in page.replace("&gt;", "")
    data = data_of(page)
    readable = harmless(text.encode("utf-8", "replace").decode())
    assert data["steps"][0]["thought"] == data["run"]["instruction"] == readable
    assert not FORBIDDEN.search(page)


@given(st.text(st.characters(codec=None), max_size=60))
def test_no_text_can_leave_its_place(text: str) -> None:
    from agent.record.report.page import _data

    block = _data({"text": text.encode("utf-8", "replace").decode()})
    assert not set("<>&\u2028\u2029") & set(block)
    assert json.loads(block)["text"] == text.encode("utf-8", "replace").decode()


def test_the_policy_of_the_page_allows_our_own_script_and_style_and_nothing_else(tmp_path: Path) -> None:
    page = page_of(a_bundle(tmp_path / "run", [a_step(1)]))
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    [script] = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    style, plain_style = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)

    def hashed(source: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"

    assert rules == {
        "default-src": "'none'", "img-src": "data:", "style-src": f"{hashed(style)} {hashed(plain_style)}",
        "script-src": hashed(script),
        "base-uri": "'none'", "form-action": "'none'",
    }  # fmt: skip
    assert not re.findall(r"(?:src|href)=|url\(http|@import|fetch\(|innerHTML|\bstyle=", OUR_IMAGE.sub("", page))


def test_without_scripts_the_run_is_told_in_short_with_each_picture_once(tmp_path: Path) -> None:
    images = [plain(1), plain(1), plain(2)]
    steps = [
        a_step(1),
        a_step(2),
        a_step(3, error="it broke", before=[{"event": "PersonSaid", "text": "use the other"}]),
    ]
    part = plain_part(page_of(a_bundle(tmp_path / "run", steps, images)))
    assert len(OUR_IMAGE.findall(part)) == 2
    told = html.unescape(re.sub(r"<[^>]*>", "\n", part))
    for words in ("done: The task is done.", "1. click at 80,45", "Thought 2.", "it broke", "use the other"):
        assert words in told


def test_the_part_without_scripts_of_a_long_run_stays_short(tmp_path: Path) -> None:
    steps = [a_step(number, image=None, thought="why " * 2000) for number in range(1, 301)]
    part = plain_part(page_of(a_bundle(tmp_path / "run", steps, [])))
    assert part.count("<li><div>") == 200 and "100 more steps" in part
    assert len(part) < 300_000


def test_what_was_undone_later_is_told(tmp_path: Path) -> None:
    undone = [
        {"kind": "setting", "what": "xsettings /Net/ThemeName", "at": "", "done": True, "words": "put back"},
        {"kind": "file", "what": "~/a\u202egnp.exe", "at": "", "done": False, "words": "it is not as it was"},
    ]
    data = data_of(page_of(a_bundle(tmp_path / "run", [a_step(1)], undone=undone)))
    assert data["run"]["undone"] == [
        "setting xsettings /Net/ThemeName: put back", "not undone: file ~/a\\u202egnp.exe: it is not as it was",
    ]  # fmt: skip


# Pictures


def test_screenshots_that_are_the_same_are_stored_once(tmp_path: Path) -> None:
    images = [plain(1), plain(2), plain(1), plain(1)]
    data = data_of(page_of(a_bundle(tmp_path / "run", [a_step(number) for number in range(1, 5)], images)))
    assert [step["picture"] for step in data["steps"]] == [0, 1, 0, 0]
    assert len(data["pictures"]) == 2


def test_pictures_keep_their_size_and_colours_where_there_is_room(tmp_path: Path) -> None:
    data = data_of(page_of(a_bundle(tmp_path / "run", [a_step(1)], [plain(1, 1920, 1080)])))
    [stored] = data["pictures"]
    assert stored["size"] == [1920, 1080]
    assert stored["reduced"] is False
    image = picture(stored["url"])
    assert image.size == (1920, 1080)
    assert image.convert("RGB").getpixel((960, 540)) == pytest.approx((37, 91, 120), abs=3)
    assert picture(stored["thumb"]).width <= 192


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_fifty_screens_of_noise_stay_under_fifteen_megabytes_and_it_is_said(tmp_path: Path) -> None:
    steps = [a_step(number) for number in range(1, 51)]
    report = write_report(a_bundle(tmp_path / "run", steps, [noise(1920, 1080, seed) for seed in range(50)]))
    assert 2_000_000 < report.bytes < 15_000_000
    assert report.pictures == report.reduced == 50
    data = data_of(report.path.read_text(encoding="utf-8"))
    assert all(stored["reduced"] and stored["size"] == [1920, 1080] for stored in data["pictures"])
    assert data["run"]["reduced"] == 50


def test_small_pictures_are_not_spoilt_because_a_large_one_is_there(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("agent.record.report.pictures._BUDGET", 100_000)
    images = [*(plain(number) for number in range(1, 10)), noise(1280, 720)]
    bundle = a_bundle(tmp_path / "run", [a_step(number) for number in range(1, 11)], images)
    stored = Pictures([bundle.path / f"screens/{number:04d}.png" for number in range(1, 11)]).all
    assert [item.reduced for item in stored] == [False] * 9 + [True]


def test_a_long_run_still_gets_a_file_that_can_be_used(tmp_path: Path) -> None:
    steps = [a_step(number) for number in range(1, 601)]
    report = write_report(a_bundle(tmp_path / "run", steps, [noise(200, 120, seed) for seed in range(600)]))
    assert report.pictures == 600
    assert report.bytes < 60_000_000
    assert len(data_of(report.path.read_text(encoding="utf-8"))["steps"]) == 600


# Runs that are not whole


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ({"outcome": "running", "pid": None}, "broke off"),
        ({"steps": 7}, "Of 7 steps only 2"),
    ],
)
def test_a_run_that_is_not_whole_says_so(tmp_path: Path, meta: dict[str, Any], words: str) -> None:
    bundle = a_bundle(tmp_path / "run", [a_step(1), a_step(2)], **meta)
    assert words in data_of(page_of(bundle))["run"]["problem"]


def test_a_run_that_goes_on_says_so(tmp_path: Path) -> None:
    import os

    bundle = a_bundle(tmp_path / "run", [a_step(1)], outcome="running", pid=os.getpid(), started="2999-01-01T00:00:00Z")
    assert "under way" in view_run(bundle)["problem"]


def test_a_run_without_steps_has_a_report(tmp_path: Path) -> None:
    data = data_of(page_of(a_bundle(tmp_path / "run", [])))
    assert data["run"]["problem"] == "No step was recorded."
    assert data["steps"] == data["pictures"] == []


def test_missing_and_broken_screenshots_are_counted_and_the_rest_is_shown(tmp_path: Path) -> None:
    bundle = a_bundle(tmp_path / "run", [a_step(1), a_step(2), a_step(3), a_step(4, image=None)])
    (bundle.path / "screens/0001.png").unlink()
    cut = (bundle.path / "screens/0002.png").read_bytes()
    (bundle.path / "screens/0002.png").write_bytes(cut[: len(cut) // 2])
    report = write_report(bundle)
    assert (report.pictures, report.missing) == (1, 3)
    assert [step["picture"] for step in data_of(report.path.read_text())["steps"]] == [None, None, 0, None]


@pytest.mark.parametrize("name", ["/etc/hostname", "../../secret.png", "screens/../../secret.png", "x\0y", 5, "", "."])
def test_no_file_outside_of_the_bundle_gets_into_its_report(tmp_path: Path, name: Any) -> None:
    plain(1).save(tmp_path / "secret.png")
    bundle = a_bundle(tmp_path / "run", [a_step(1, image={"file": name})], [])
    assert write_report(bundle).pictures == 0


def test_a_folder_that_is_no_run_and_a_place_that_takes_no_file_are_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a run"):
        write_report(tmp_path)
    bundle = a_bundle(tmp_path / "run", [a_step(1)])
    with pytest.raises(EnvironmentLacksError, match="There is no folder"):
        write_report(bundle, tmp_path / "nowhere" / "report.html")


def test_texts_named_on_request_are_masked_in_the_report_only(tmp_path: Path) -> None:
    bundle = a_bundle(tmp_path / "run", [a_step(1, thought="Greet Ada Lovelace.")], instruction="greet Ada Lovelace")
    page = page_of(bundle, output=tmp_path / "out.html", redactor=Redactor(secrets=["Ada Lovelace"]))
    assert "Lovelace" not in page
    assert data_of(page)["steps"][0]["thought"] == "Greet [redacted 12 chars]."
    assert "Lovelace" in (bundle.path / "steps.jsonl").read_text()


@pytest.mark.parametrize(
    "action",
    [Click(DesktopPoint(1, 2), "right", 2), Drag(None, DesktopPoint(3, 4)), Scroll(None, 0, -2), TypeText("x"),
     Finish(success=False, message="no")],
)  # fmt: skip
def test_recorded_actions_read_back(action: Any) -> None:
    read = read_action(json.loads(json.dumps(to_json(action))))
    assert read == action
    assert describe(read) == describe(action)
