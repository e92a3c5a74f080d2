"""What is looked at before a start and before "ready": files, the network, the disk, words and pictures; told once."""

import errno
import json
import shutil
from pathlib import Path

import pytest
from stubs.controlled import Machine

from foundation.errors import EnvironmentLacksError
from serverctl.plan.goal import Goal
from serverctl.process import control, state
from serverctl.process.state import Folder, State, current_state


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        ({"reads": "words wrong"}, "10 words it made 3 tokens"),
        ({"reads": "picture wrong"}, "83 tokens where the model makes 64"),
        ({"reads": "no picture"}, "left the picture out"),
        ({"chat": "no template"}, "no chat template"),
        ({"chat": "broken template"}, "its chat template is broken"),
        ({"reads": "all alike"}, "prefers no word to another"),
        ({"chat": "no numbers"}, "what it computes are no numbers"),
    ],
)
def test_a_server_that_answers_wrong_is_not_ready_and_not_started_again(
    machine: Machine, scenario: dict[str, str], said: str
) -> None:
    machine.scenario(scenario)
    assert said in machine.refused("MISREADS", 1)["evidence"]


def test_a_server_that_may_not_tell_how_likely_words_are_is_ready_all_the_same(machine: Machine) -> None:
    machine.scenario({"most_logprobs": 0})
    assert machine.up().phase == "ready"


def test_broken_files_cost_no_start_and_the_sentence_says_what_to_do(machine: Machine) -> None:
    (machine.model / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\nsize 99\n")
    failure = machine.refused("CORRUPT", 0)
    assert "Git LFS pointer" in failure["title"]
    assert "lfs pull" in failure["remedy"]


def test_a_way_to_quantise_that_this_vllm_does_not_know_costs_no_start(machine: Machine) -> None:
    config = json.loads((machine.model / "config.json").read_text())
    (machine.model / "config.json").write_text(json.dumps({**config, "quantization_config": {"quant_method": "qqq"}}))
    assert "qqq" in machine.refused("CANNOT_PLAN", 0)["title"]


def test_what_failed_is_said_once(machine: Machine) -> None:
    machine.scenario({"before": {"LOADING": [["print", "ValueError: Unknown quantization method: x\n"], ["exit", 1]]}})
    done = machine.run("up", *machine.small)
    title = "This vLLM does not know that quantisation"
    assert (done.returncode, done.stderr.count(title)) == (1, 1)
    assert machine.run("status").stdout.count(title) == 1


def test_an_engine_that_dies_of_the_very_first_question_would_do_so_again(machine: Machine) -> None:
    machine.scenario({"chat": "die of an error"})
    failure = machine.refused("ENGINE_DIED", 1)
    assert "RuntimeError" in failure["cause"]
    assert "dmesg" not in failure["remedy"]


def test_files_are_not_looked_at_where_a_person_insists(machine: Machine) -> None:
    (machine.model / "tokenizer.json").unlink()
    insisting = Goal(model=str(machine.model), overrides={"kv_cache_memory_bytes": 64 << 20}, force=True)
    assert machine.up(goal=insisting).phase == "ready"


def test_without_a_network_a_model_that_is_not_here_costs_no_start(machine: Machine) -> None:
    machine.cards("NVIDIA GeForce RTX 4090")
    machine.lose_hub()
    failure = machine.refused("NETWORK", 0, Goal(model="MAI-UI-2B"), gpu=True)
    assert "hub cannot be reached" in failure["title"]


def snapshot_of(machine: Machine) -> Path:
    """The tiny model as the hub's client would have downloaded it, as org/tiny."""
    repo, commit = machine.folder / "hub" / "hub" / "models--org--tiny", "0" * 40
    (repo / "refs").mkdir(parents=True)
    (repo / "refs" / "main").write_text(commit)
    shutil.copytree(machine.model, repo / "snapshots" / commit)
    return repo / "snapshots" / commit


def test_what_is_wholly_here_is_started_without_the_hub(machine: Machine) -> None:
    folder = snapshot_of(machine)
    wanted = Goal(model="org/tiny", overrides={"kv_cache_memory_bytes": 64 << 20})
    machine.lose_hub()
    found = machine.up(goal=wanted)
    assert found.phase == "ready", found.message
    assert machine.starts[0]["environ"]["HF_HUB_OFFLINE"] == "1"
    machine.down()
    (folder / "preprocessor_config.json").unlink()  # the hub's client would fetch it
    machine.scenario({})
    found = machine.up(goal=wanted)
    assert found.phase == "ready", found.message
    assert "HF_HUB_OFFLINE" not in machine.starts[0]["environ"]


def test_a_broken_download_is_refused_with_the_file_to_delete(machine: Machine) -> None:
    (snapshot_of(machine) / "model.safetensors").write_bytes(b"")
    goal = Goal(model="org/tiny", overrides={"kv_cache_memory_bytes": 64 << 20})
    failure = machine.refused("CORRUPT", 0, goal)
    assert "model.safetensors in org/tiny is empty" in failure["title"]
    assert "downloads it again" in failure["remedy"]


def test_doctor_tells_of_the_named_model_s_files(machine: Machine) -> None:
    def files() -> list[dict[str, str]]:
        done = machine.run("doctor", "--model", str(machine.model), "--json")
        return [finding for finding in json.loads(done.stdout) if finding["name"] == "files"]

    (whole,) = files()
    assert whole["ok"]
    (machine.model / "tokenizer.json").unlink()
    (lacking,) = files()
    assert not lacking["ok"]
    assert "tokenizer.json is missing" in lacking["detail"]


def test_of_an_error_the_heart_is_quoted_and_no_word_is_cut() -> None:
    before = "pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig Value error,"
    said = f"{before} Cannot find the config file for gptq_marlin [type=value_error, input_value=ArgsKwargs(())]"
    told = control.failure_of(State(failure={"title": "It failed", "evidence": said}))
    assert told.what == 'It failed. It said: "Cannot find the config file for gptq_marlin".'
    long = control.failure_of(State(failure={"title": "It failed", "evidence": "letters " * 40}))
    assert long.what.endswith('letters ...".')
    assert len(long.what) < 340


def test_an_error_of_its_own_at_the_start_is_not_tried_again(machine: Machine) -> None:
    machine.scenario({"before": {"LOADING": [["print", "RuntimeError: nobody knows this\n"], ["exit", 1]]}})
    assert "nobody knows this" in machine.refused("EXITED", 1)["evidence"]


class TestFullDisk:
    """A disk without room for another file, as far as this program can tell."""

    @pytest.fixture
    def folder(self, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Folder:
        folder.write(State(phase="starting", name="default", plan={"argv": ["x"] * 50}, message="Starting."))

        def full(path: Path, *_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))

        monkeypatch.setattr(state, "write_atomically", full)
        monkeypatch.setattr(control, "write_atomically", full)
        return folder

    def test_a_server_that_could_not_say_how_it_ended_is_not_told_as_killed(
        self, folder: Folder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert "killed" in current_state(folder).message
        monkeypatch.setattr(state, "has_room", lambda _: False)
        found = current_state(folder)
        assert found.failure is not None
        assert found.failure["kind"] == "DISK"
        assert "is full" in str(control.failure_of(found))

    def test_a_start_says_that_the_disk_is_full(self, folder: Folder, machine: Machine) -> None:
        with pytest.raises(EnvironmentLacksError, match="is full"):
            machine.launch("another")
