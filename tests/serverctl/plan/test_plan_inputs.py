"""What a plan is made from is read in one place; the planner itself reads nothing."""

import builtins
import io
import json
from pathlib import Path
from typing import Any

import pytest
from planning import GIB, NEW, card, machine, plan

from foundation.errors import EnvironmentLacksError, UsageError
from serverctl.commands.plans.plan import main
from serverctl.commands.servers import up
from serverctl.models.find import find_model
from serverctl.plan.decide import make_plan
from serverctl.plan.goal import Goal
from serverctl.planning import load_tables


def test_the_planner_opens_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    model = find_model("MAI-UI-8B")
    tables = load_tables((model, find_model("MAI-UI-2B")))
    hardware = machine(card(24), card(24, index=1))

    def refuse(*asked: Any, **_: Any) -> None:
        raise AssertionError(f"{asked[0]} was read")

    monkeypatch.setattr(builtins, "open", refuse)
    monkeypatch.setattr(io, "open", refuse)
    monkeypatch.setattr(Path, "glob", refuse)
    for wanted in (model, None):
        assert make_plan(hardware, Goal(), NEW, wanted, tables).settings.images
    with pytest.raises(UsageError):
        make_plan(hardware, Goal(preset="nonsense"), NEW, model, tables)


def test_a_card_nobody_listed_is_planned_for_from_what_is_said_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """16.3 GiB of weights less 1.1 GiB of vision tower are read once a token: 59 tokens/s at 960 GB/s."""
    described = ["--gpu-memory", "47.5", "--gpu-capability", "8.9", "--gpu-bandwidth", "960"]
    assert main(["--gpu", "RTX 9999", *described, "--model", "MAI-UI-8B", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["hardware"]["gpus"][0]["compute_capability"] == [8, 9]
    assert made["memory"]["total"] == 47.5 * GIB
    assert any(note.startswith("One request gets 59 tokens/s at the very most") for note in made["notes"])


def test_a_start_takes_its_cards_from_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAI_SERVER_STATE", str(tmp_path))
    with pytest.raises(UsageError, match="cards here, not 60"):
        up.main(["--gpus", "60", "--json"])


def test_broken_files_of_one_of_our_models_matter_only_where_it_could_be_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    repo = tmp_path / "models--Tongyi-MAI--MAI-UI-2B"
    for file, text in {"snapshots/one/config.json": "{half", "refs/main": "one"}.items():
        (repo / file).parent.mkdir(parents=True)
        (repo / file).write_text(text)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert plan("h100", "MAI-UI-8B").model.name == "MAI-UI-8B"
    with pytest.raises(EnvironmentLacksError, match=r"config\.json cannot be read"):
        plan("h100", None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--gpu-memory", "24"], "describe --gpu"),
        (["--gpu", "x", "--gpu-memory", "0"], "cannot be 0"),
        (["--gpu", "x", "--gpu-memory", "24", "--gpu-capability", "89"], "no compute capability"),
        (["--gpu", "x", "--gpu-memory", "24", "--gpu-capability", "8.9", "--gpu-bandwidth", "nan"], "cannot be nan"),
    ],
)
def test_a_description_that_is_none_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        main(words)
