"""The live page: who may see it, who may decide, and what an answer does. The browser itself: tests/e2e."""

import asyncio
import gc
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from record.bundles import a_bundle, a_step
from starlette.testclient import TestClient

from agent.conductor import ApprovalWanted, QuestionOver, ReplyWanted, Run, RunBegan
from agent.core.actions import Click, OpenApp, TypeText
from agent.core.geometry import DesktopPoint
from agent.desktop.guard.own_windows import shows_our_page
from agent.safety.policy import Question
from agent.safety.situation import Place, Situation
from agent.web.app import Door, make_app
from agent.web.live import Live

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e\x1b[31m"
BASE = "http://127.0.0.1:4000"
POST = {"Origin": BASE}


class Runs:
    """In place of a `Conductor`: remembers what it is asked for."""

    def __init__(self) -> None:
        self.run: Run | None = Run("a task")
        self.recorder = None
        self.asked: list[str] = []

    def start(self, instruction: str) -> None:
        self.asked.append(f"start {instruction}")

    def stop(self, reason: str) -> None:
        self.asked.append(f"stop {reason}")


class Page:
    def __init__(self, base: str = BASE) -> None:
        self.live, self.door = Live(asyncio.new_event_loop()), Door()
        self.runs: Any = Runs()
        self.live.runs, self.live.start = self.runs, self.runs.start
        self.app = make_app(self.live, self.door)
        self.person, self.watcher, self.stranger = (TestClient(self.app, base_url=base) for _ in range(3))
        assert "url=/" in self.person.get("/open", params={"key": self.door.once}).text
        assert self.watcher.get("/open", params={"key": self.door.watch}).status_code == 200
        self.take(RunBegan("a task", 5))

    def take(self, report: Any, bundle: Path | None = None) -> None:
        self.live._take(report, bundle, None)

    def ask(self, scope: str = "") -> list[Any]:
        """Ask about an action; the answers that it gets."""
        answers: list[Any] = []
        self.take(ApprovalWanted(TypeText(HOSTILE), Question(HOSTILE, scope, "rules"), answers.append))
        return answers

    def question(self) -> dict[str, Any]:
        found: dict[str, Any] = self.person.get("/data").json()["live"]["question"]
        return found


@pytest.fixture
def page() -> Iterator[Page]:
    yield Page()


def test_the_persons_link_works_once_and_the_watchers_link_for_all(page: Page) -> None:
    other = TestClient(page.app, base_url=BASE)
    assert other.get("/open", params={"key": page.door.once}).status_code == 403
    assert other.get("/open", params={"key": page.door.watch}).status_code == 200
    assert other.get("/open", params={"key": ""}).status_code == 403
    door = Door()
    previews = TestClient(make_app(page.live, door), base_url=BASE)
    assert previews.head("/open", params={"key": door.once}).status_code == 405, "as previews of links send it"
    assert previews.get("/open", params={"key": door.once}).status_code == 200
    assert page.person.get("/data").json()["live"]["decides"] is True
    assert page.watcher.get("/data").json()["live"]["decides"] is False


@pytest.mark.parametrize("path", ["/", "/data", "/events", "/screens/0001.png", "/decide", "/nothing"])
def test_without_a_token_nothing_is_told(page: Page, path: str) -> None:
    answer = page.stranger.get(path)
    assert answer.status_code == 403
    assert "a task" not in answer.text


def test_its_title_tells_that_the_browsers_window_is_ours(page: Page) -> None:
    page.ask()
    title = page.person.get("/data").json()["live"]["title"]
    assert title.startswith("IT ASKS YOU · ")
    assert shows_our_page(f"{title} - Some Browser")
    assert f"<title>{title}</title>" in page.person.get("/").text


def test_at_the_other_end_of_a_tunnel_the_page_has_another_port_and_decides() -> None:
    page = Page("http://localhost:8765")
    answers = page.ask()
    body = {"question": page.question()["id"], "answer": "allow", "text": ""}
    assert page.person.post("/decide", json=body, headers=POST).status_code == 403, "of this machine's own port"
    origin = {"Origin": "http://localhost:8765"}
    assert page.person.post("/decide", json=body, headers=origin).status_code == 200
    assert [answer.allowed for answer in answers] == [True]


def test_a_watcher_cannot_decide_or_steer(page: Page) -> None:
    answers = page.ask()
    body = {"question": page.question()["id"], "answer": "allow", "text": ""}
    assert page.watcher.post("/decide", json=body, headers=POST).status_code == 403
    assert page.watcher.post("/control", json={"what": "stop", "text": ""}, headers=POST).status_code == 403
    assert (answers, page.runs.asked) == ([], [])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),  # a form of another page sends no origin of ours
        ({"Origin": "http://127.0.0.1:4001"}, 403),
        ({"Origin": "null"}, 403),
        ({**POST, "Host": "evil.example:4000"}, 421),
        ({"Origin": "http://evil.example", "Host": "evil.example"}, 421),
        ({**POST, "Sec-Fetch-Site": "cross-site"}, 403),
        ({**POST, "Sec-Fetch-Site": "same-site"}, 403),
        ({**POST, "Content-Type": "text/plain"}, 403),
    ],
)
def test_another_page_decides_nothing(page: Page, headers: dict[str, str], status: int) -> None:
    answers = page.ask()
    body = json.dumps({"question": page.question()["id"], "answer": "allow", "text": ""})
    sent = {"Content-Type": "application/json", **headers}
    assert page.person.post("/decide", content=body, headers=sent).status_code == status
    assert answers == []


@pytest.fixture
def collected() -> Iterator[None]:
    """Collects earlier garbage first: in a recursion that is too deep, pytest cannot report what was never awaited."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"question": 5}', b'{"what": []}', b"[" * 90_000, b"\xff"])
@pytest.mark.parametrize("path", ["/decide", "/control"])
def test_a_request_that_is_no_decision_changes_nothing(page: Page, path: str, body: bytes) -> None:
    answers = page.ask()
    headers = POST | {"Content-Type": "application/json"}
    assert page.person.post(path, content=body, headers=headers).status_code in (400, 409)
    assert page.person.post(path, content=b" " * 100_001, headers=headers).status_code == 413
    assert (answers, page.runs.asked) == ([], [])


@pytest.mark.parametrize(
    ("answer", "text", "scope", "gives"),
    [
        ("allow", "", "", {"allowed": True, "always": False}),
        ("allow", "words that do not count", "", {"allowed": True, "note": ""}),
        ("always", "", "typing into x", {"allowed": True, "always": True}),
        ("skip", "", "", {"allowed": False, "skip": True}),
        ("refuse", "", "", {"allowed": False, "note": "", "skip": False}),
        ("refuse", "do that", "", {"allowed": False, "note": "do that"}),
    ],
)
def test_a_decision_is_given_once_and_to_its_own_question(
    page: Page, answer: str, text: str, scope: str, gives: dict[str, Any]
) -> None:
    answers = page.ask(scope)
    old = page.question()["id"]
    page.take(QuestionOver())
    answers = page.ask(scope)

    def decide(question: str) -> int:
        body = {"question": question, "answer": answer, "text": text}
        return page.person.post("/decide", json=body, headers=POST).status_code

    new = page.question()["id"]
    assert decide(old) == 409
    assert answers == []
    assert decide(new) == 200
    assert decide(new) == 409
    (approval,) = answers
    assert gives.items() <= {name: getattr(approval, name) for name in approval.__slots__}.items()


def test_a_changed_action_is_shown_whole_before_it_is_allowed(page: Page) -> None:
    answers: list[Any] = []
    page.take(ApprovalWanted(Click(DesktopPoint(10, 20)), Question("why", "in this window", "rules"), answers.append))
    asked = page.question()
    assert asked["edit"] == "10,20"
    assert asked["scope"]

    def decide(answer: str, text: str) -> int:
        body = {"question": page.question()["id"], "answer": answer, "text": text}
        return int(page.person.post("/decide", json=body, headers=POST).status_code)

    assert decide("change", "no point") == 422
    assert page.question() == asked
    assert decide("change", "30,40") == 200
    assert answers == []
    assert page.question()["edit"] == "30,40"
    assert not page.question()["scope"]
    assert page.question()["id"] != asked["id"]
    assert decide("allow", "") == 200
    assert [(one.allowed, one.instead) for one in answers] == [(True, Click(DesktopPoint(30, 40)))]


def test_always_needs_a_scope_and_a_reply_needs_a_question_for_one(page: Page) -> None:
    answers = page.ask()
    for answer in ("always", "reply", "anything"):
        body = {"question": page.question()["id"], "answer": answer, "text": "x"}
        assert page.person.post("/decide", json=body, headers=POST).status_code == 409
    page.take(QuestionOver())
    page.take(ReplyWanted("Which one?", answers.append))
    body = {"question": page.question()["id"], "answer": "allow", "text": "x"}
    assert page.person.post("/decide", json=body, headers=POST).status_code == 409
    assert page.person.post("/decide", json=body | {"answer": "reply"}, headers=POST).status_code == 200
    assert answers == ["x"]


def test_the_run_is_steered(page: Page) -> None:
    def control(what: str, text: str = "") -> int:
        return page.person.post("/control", json={"what": what, "text": text}, headers=POST).status_code

    steering = page.runs.run.steering
    assert (control("pause"), steering.held_by) == (200, "paused")
    assert page.watcher.get("/data").json()["live"]["state"] == "PAUSED"
    assert (control("step"), steering.held_by) == (200, "step")
    assert (control("resume"), steering.held_by) == (200, "")
    assert (control("tell", "faster"), steering.take_told()) == (200, ["faster"])
    assert (control("start", "another"), control("nonsense")) == (409, 409)  # one run at a time
    assert (control("stop"), page.runs.asked) == (200, ["stop you stopped it"])


def test_foreign_text_is_never_markup_and_nothing_in_it_hides(page: Page) -> None:
    page.ask()
    answer = page.person.get("/")
    assert "onerror" in answer.text
    assert "<img src=x" not in answer.text
    assert "\u202e" not in answer.text
    assert "\x1b" not in json.dumps(page.person.get("/data").json(), ensure_ascii=False)
    policy = answer.text.split('http-equiv="Content-Security-Policy" content="')[1].split('"')[0]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-frame-options"] == "DENY"


def test_only_screenshots_of_this_run_are_handed_out(page: Page, tmp_path: Path) -> None:
    bundle = a_bundle(tmp_path / "run", [a_step(1)])
    secret = bundle.path / "run.json"
    assert secret.exists()
    page.take(QuestionOver(), bundle.path)
    (picture,) = page.person.get("/data").json()["pictures"]
    assert page.person.get(picture["url"]).headers["content-type"].startswith("image/")
    for name in ("..%2frun.json", "%2e%2e/run.json", "nothing.png", f"%2f{secret}"):
        assert page.person.get(f"/screens/{name}").status_code in (403, 404)


@pytest.mark.parametrize("path", ["/screens/" + 3000 * "a", "/screens/%00", "/screens/..%2Frun.json"])
def test_a_name_that_no_screenshot_can_have_is_not_found(page: Page, path: str) -> None:
    page.live._bundle = Path("/nowhere")
    assert page.person.get(path).status_code == 404


def test_a_host_that_is_no_name_and_a_question_that_is_no_token_are_refused(page: Page) -> None:
    assert page.person.get("/data", headers={"Host": "[::1"}).status_code == 421
    page.ask()
    body = {"question": "é", "answer": "allow", "text": ""}
    assert page.person.post("/decide", json=body, headers=POST).status_code == 409


def test_what_was_known_of_the_models_target_is_not_told_of_the_persons(page: Page) -> None:
    known = Situation(under=Place("Notes", "Notes"), words="Plain", opens=("Notes", "notes"))
    for action, written in ((Click(DesktopPoint(10, 20)), "30,40"), (OpenApp("notes"), "xterm")):
        page.take(ApprovalWanted(action, Question("why", "", "rules", situation=known), lambda _: None))
        assert "Notes" in str(page.question())
        body = {"question": page.question()["id"], "answer": "change", "text": written}
        assert page.person.post("/decide", json=body, headers=POST).status_code == 200
        assert written in str(page.question())
        assert "Notes" not in str(page.question())
