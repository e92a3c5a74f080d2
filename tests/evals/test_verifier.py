"""A model as verifier: what it is shown, how its answers are read and kept, and its figures against the judges."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from evals.test_task_report import BUNDLES, verdict
from stubs.endpoint import FakeEndpoint, pictures, say, texts

from agent.evals.tasks.report import lines, report_on
from agent.evals.tasks.verifier import read_verifier, verify
from agent.model.clients import client_of
from agent.model.endpoint import Endpoint
from agent.record.read import read_bundle
from foundation.errors import MaiError

BUNDLE = next(path for path in sorted(BUNDLES.iterdir()) if (path / "run.json").is_file())


def asked(out: Path, runs: list[Any], *answers: str, model: str = "checker") -> list[dict[str, Any]]:
    """Ask a verifier that gives these answers about runs; the requests that it got."""

    async def main(url: str) -> None:
        client = client_of(Endpoint(url, model=model))
        try:
            await verify(client, model, runs, out, lambda _: None)
        finally:
            await client.aclose()

    with FakeEndpoint([say(answer) for answer in answers]) as endpoint:
        asyncio.run(main(f"{endpoint.url}/v1"))
        return endpoint.requests


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "runs").symlink_to(BUNDLE.parent)
    return tmp_path


def run(name: str, outcome: str = "right") -> Any:
    return verdict(name, outcome, True, bundle=f"runs/{BUNDLE.name}")


def test_it_is_shown_the_task_the_changes_and_the_screen_before_and_after(out: Path) -> None:
    (request,) = asked(out, [run("a#1")], '{"done": true}')
    bundle = read_bundle(BUNDLE)
    said = "\n".join(texts(request))
    assert "The task: b" in said
    assert "hanged" in said
    assert len(pictures(request)) == 2 * any(step.image for step in bundle.steps)
    assert "checked" not in said and "right" not in said.replace("copyright", "")


def test_a_folder_is_gone_on_with_and_each_model_is_asked_for_itself(out: Path) -> None:
    runs = [run("a#1"), run("b#1"), verdict("c#1", "not judged")]
    with pytest.raises(MaiError):  # an endpoint that refuses all from the beginning
        asked(out, [run(f"{number}#1") for number in range(4)])
    asked(out, runs, '{"done": true}')  # the endpoint has one answer only, and refuses the other run
    assert read_verifier(out) == {"a#1": {"checker": True}}
    assert len(asked(out, runs, 'I think\n```json\n{"done": false}\n```')) == 1
    assert len(asked(out, runs, "no idea", '{"done": "yes"}', model="other")) == 2
    assert read_verifier(out) == {"a#1": {"checker": True, "other": None}, "b#1": {"checker": False, "other": None}}
    assert asked(out, runs) == []
    kept = [json.loads(line) for line in (out / "verifier.jsonl").read_text().splitlines()]
    assert kept[2]["answer"] == "no idea"


def test_its_precision_and_recall_are_against_the_judges() -> None:
    runs = [run("a#1"), run("b#1"), run("c#1", "false done"), run("d#1", "honest miss"), run("e#1")]
    said: dict[str, dict[str, bool | None]] = {
        "a#1": {"m": True}, "b#1": {"m": False}, "c#1": {"m": True}, "d#1": {"m": False, "n": None},
    }  # fmt: skip
    report = report_on(runs, {}, verified=said)
    found = report.verifiers["m"]
    assert (found.precision.right, found.precision.count) == (1, 2)
    assert (found.recall.right, found.recall.count) == (1, 2)
    assert report.verifiers["n"].unclear == 1
    assert any(line.startswith("m: precision") for line in lines(report))
