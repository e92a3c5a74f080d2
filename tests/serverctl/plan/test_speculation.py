"""Ways of guessing tokens ahead: which a plan takes, what each needs, and the memory that it takes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from planning import flags, plan

from foundation.errors import UsageError
from serverctl.models.find import find_model


def test_a_model_with_a_head_of_its_own_guesses_with_that_and_others_from_the_prompt() -> None:
    own = flags(plan("h100", "Qwen3.5-9B", "speculative"))
    assert (own["--spec-method"], own["--spec-tokens"]) == ("mtp", "2")
    prompt = flags(plan("h100", "MAI-UI-8B", "speculative"))
    assert (prompt["--spec-method"], prompt["--spec-tokens"]) == ("ngram", "4")
    assert "--spec-method" not in flags(plan("h100", "Qwen3.5-9B"))


def test_the_persons_own_way_wins_over_the_models_head() -> None:
    made = plan("h100", "Qwen3.5-9B", "speculative", overrides={"spec_method": "suffix"})
    assert made.settings.spec_method == "suffix"
    assert made.settings.spec_tokens is None, "vLLM knows its own number for suffixes"
    assert any("arctic-inference" in text for text in made.warnings)


def test_a_way_that_takes_a_second_model_is_refused_without_one() -> None:
    with pytest.raises(UsageError, match="needs the model that guesses"):
        plan("h100", "MAI-UI-8B", overrides={"spec_method": "draft_model"})
    made = plan("h100", "MAI-UI-8B", overrides={"spec_method": "draft_model", "spec_model": "Qwen/Qwen3-0.6B"})
    assert flags(made)["--spec-model"] == "Qwen/Qwen3-0.6B"
    assert any("sees pictures itself" in text for text in made.warnings)


def test_a_head_takes_its_weights_and_its_part_of_the_cache() -> None:
    """Qwen3.5-9B: one layer with keys and values beside eight, and 2 x (a layer + 2 x 4096 squared) bytes."""
    without, own = plan("h100", "Qwen3.5-9B"), plan("h100", "Qwen3.5-9B", "speculative")
    assert own.budget.token * 8 == without.budget.token * 9
    head = own.budget.weights - without.budget.weights
    assert head == own.model.head_bytes
    assert 0.4e9 < head < 0.6e9


def test_a_plan_that_guesses_says_how_to_find_out_whether_it_helps() -> None:
    assert any("bench --replay" in note for note in plan("h100", "MAI-UI-8B", "speculative").notes)
    assert not any("bench --replay" in note for note in plan("h100", "MAI-UI-8B").notes)


def test_a_downloaded_models_own_config_tells_of_its_head(tmp_path: Path) -> None:
    model = find_model("Qwen3.5-9B", allow_network=False)
    shapes = Path(__file__).parents[3] / "configs" / "models" / "shapes"
    config = json.loads((shapes / "qwen3.5-9b.json").read_text())
    for said, layers in ((1, 1), (None, 0), ("x", 0), (-1, 0)):
        config["text_config"]["mtp_num_hidden_layers"] = said
        (tmp_path / "config.json").write_text(json.dumps(config))
        assert find_model(str(tmp_path)).mtp_layers == layers
    assert model.mtp_layers == 1
    assert replace(model, mtp_layers=0).head_bytes == 0
