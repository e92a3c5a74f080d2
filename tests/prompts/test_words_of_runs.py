"""Runs in the publisher's words: what is sent, what is recorded, and what is asked before."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stubs.desk import SETTLE, FakePerson
from stubs.endpoint import DONE, FakeEndpoint, say
from stubs.made_up_desktop import MadeUpDesktop
from stubs.publisher import COMMIT, Repository, prompts_data, serving

from agent.events.as_json import to_json
from agent.events.run_events import RunStarted
from agent.families.published import Published
from agent.model.endpoint import Endpoint
from agent.model.engines import Engine
from agent.options import RunOptions
from agent.prompts import store
from agent.run.models.settings import RunSettings
from agent.run.session import Request, run
from agent.safety.policy import Policy
from agent.safety.stop import StopSwitch
from agent.settings import Settings
from agent.workplace import Workplace
from foundation.endpoints import normalize_url

PUBLISHED = Published("someone/client@0123", {"system": "Word for word.", "grounding": "Where?"}, ("system",))


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("MAI_AGENT_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(store, "network_at_hand", lambda _: True)


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    with serving() as served:
        data = prompts_data(served.url + "/{repository}/{commit}/{path}")
        monkeypatch.setattr(store, "load_config", lambda _: data)
        store._prompts.cache_clear()
        yield served
    store._prompts.cache_clear()


@pytest.mark.parametrize(
    ("style", "published", "own", "words", "system"),
    [
        ("reference", PUBLISHED, None, "published, someone/client@0123", "Word for word."),
        ("desktop", PUBLISHED, None, "ours", None),  # it is about a phone
        ("reference", None, None, "ours", None),
        ("reference", PUBLISHED, "Mine.", "yours", "Mine."),
    ],
)
async def test_a_run_says_whose_words_it_used_and_uses_them(
    style: str, published: Published | None, own: str | None, words: str, system: str | None
) -> None:
    events: list[Any] = []
    endpoint = FakeEndpoint([say(DONE)])
    try:
        request = Request(
            RunSettings("do the task", settle=SETTLE, options={"style": style}),
            {"actor": Engine("endpoint", Endpoint(normalize_url(endpoint.url)))}, Policy.load("never"),
            open_desktop=MadeUpDesktop, sandbox=True, published=lambda _: published, system_prompt=lambda _: own,
        )  # fmt: skip
        await run(request, FakePerson(), StopSwitch(), events.append)
    finally:
        endpoint.close()
    [started] = [event for event in events if isinstance(event, RunStarted)]
    assert (started.actor.words, to_json(started)["words"]) == (words, words)
    sent = endpoint.requests[0]["messages"][0]["content"]
    text = sent if isinstance(sent, str) else sent[0]["text"]
    assert text == system if system is not None else "word for word" not in text.casefold()


class Asked:
    """A person who gives one answer to every question."""

    def __init__(self, answer: bool) -> None:
        self.questions: list[str] = []
        self.told: list[str] = []
        self._answer = answer

    def __call__(self, question: str) -> bool:
        self.questions.append(question)
        return self._answer

    def offered(self, family: str = "qwen3-vl", **more: Any) -> int:
        """Return how many questions an offer asked."""
        before = len(self.questions)
        store.offer(family, self, self.told.append, **more)
        return len(self.questions) - before


def test_yes_fetches_and_is_asked_once(repository: Repository) -> None:
    person = Asked(True)
    assert person.offered() == 1
    assert f"made-up/client@{COMMIT[:12]}" in person.questions[0]
    assert store.is_kept(store.recipe_of("qwen3-vl"))
    assert person.offered() == 0
    store.remove(store.recipe_of("qwen3-vl"))
    assert person.offered() == 0


def test_no_fetches_nothing_and_is_asked_once(repository: Repository) -> None:
    person = Asked(False)
    assert [person.offered(), person.offered()] == [1, 0]
    assert not repository.asked
    assert "prompts fetch qwen3-vl" in person.told[0]


def test_what_cannot_be_fetched_is_told_and_asked_again_another_time(repository: Repository) -> None:
    person = Asked(True)
    repository.close()
    assert [person.offered(), person.offered()] == [1, 1]
    assert person.told[0].startswith("The model is asked in our own words.")


@pytest.mark.parametrize(
    ("family", "more", "asked"),
    [
        ("qwen3-vl", {}, 1),
        ("qwen3-vl", {"points": True}, 0),  # it has no words for points
        ("mai-ui", {}, 0),  # a phone's
        ("mai-ui", {"reference": True}, 1),
        ("mai-ui", {"points": True}, 1),
        ("generic", {}, 0),
    ],
)
def test_only_words_that_a_run_would_use_are_offered(
    repository: Repository, family: str, more: dict[str, Any], asked: int
) -> None:
    assert Asked(False).offered(family, **more) == asked


def test_without_a_network_nothing_is_asked(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "network_at_hand", lambda _: False)
    assert Asked(True).offered() == 0


@pytest.mark.parametrize(
    ("options", "offers_", "asked"),
    [({}, True, 1), ({}, False, 0), ({"words": "ours"}, True, 0), ({"system_prompt": Path("own.txt")}, True, 0)],
)
def test_a_run_asks_before_it_begins(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: dict[str, Any], offers_: bool,
    asked: int,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("own.txt").write_text("Mine.")
    person = Asked(True)
    engine = Engine("endpoint", Endpoint("http://127.0.0.1:1/v1", model="Qwen3-VL-8B-Instruct"))

    class Desk:
        environ = None
        open_desktop = MadeUpDesktop

    told = RunOptions(settings=Settings(), runs=tmp_path / "runs", **options)
    workplace = Workplace(told, person.told.append, person, offers=offers_)
    monkeypatch.setattr(workplace, "_open", lambda *_: ({"actor": engine}, Desk()))
    job = workplace.job("do the task", StopSwitch())
    try:
        assert len(person.questions) == asked
        words = job.request.published("qwen3-vl")
        assert (words is not None) == (asked == 1)
    finally:
        job.recorder.close()
