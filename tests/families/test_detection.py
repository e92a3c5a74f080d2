"""A model's family is told by its name, by where its server has it from, and by the files of its folder."""

import json
import tomllib
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from stubs.endpoint import FakeEndpoint

from agent.commands.models.families import main
from agent.families.registry import detect_family, detect_folder, family_names, get_family
from agent.model.asking import Patience
from agent.model.endpoint import Endpoint
from agent.model.engines import Engine
from agent.run.models.roles import ServedModel, open_model


def folder(path: Path, config: Any = None, **files: Any) -> Path:
    """A model's folder, whose files hold these values."""
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps({} if config is None else config))
    for name, value in files.items():
        if name == "template":
            (path / "chat_template.jinja").write_text(value)
        else:
            (path / f"{name}.json").write_text(json.dumps(value))
    return path


async def opened(**served: Any) -> ServedModel:
    """The model that an endpoint serves under a name that says nothing."""
    with FakeEndpoint(models=[{"id": "default", "object": "model", "owned_by": "vllm", **served}]) as endpoint:
        async with AsyncExitStack() as stack:
            return await open_model(Engine("endpoint", Endpoint(f"{endpoint.url}/v1")), None, Patience(), stack)


@pytest.mark.parametrize(
    ("served", "family"),
    [
        ({"root": "Tongyi-MAI/MAI-UI-8B"}, "mai-ui"),
        ({"root": "/models/Holo-3.1-4B"}, "holo3"),
        ({"root": "x", "parent": "Qwen/Qwen3-VL-8B-Instruct"}, "qwen3-vl"),
        ({"root": 7}, "generic"),
        ({}, "generic"),
    ],
)
async def test_a_name_that_says_nothing_is_looked_up_where_the_model_is_from(
    served: dict[str, Any], family: str
) -> None:
    model = await opened(**served)
    assert model.family.facts.name == family
    [remark] = model.remarks
    assert ("is unknown" in remark) == (family == "generic")
    assert family in remark


@pytest.mark.parametrize("model", ["acme/planner-7b", "a-generic-llm", "literally-8b"])
def test_a_word_in_a_models_name_is_none_of_our_own_formats(model: str) -> None:
    assert detect_family(model) is None
    assert get_family("planner").facts.name == "planner", "it is named all the same"


NAMES = tomllib.loads((Path(__file__).parent / "data" / "model_names.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("family", NAMES)
def test_a_model_is_recognised_however_its_name_is_spelt(family: str) -> None:
    wrong = {name: found for name in NAMES[family].split() if (found := detect_family(name) or "none") != family}
    assert wrong == {}


def test_hundreds_of_real_names_are_tried() -> None:
    assert sum(len(set(names.split())) for names in NAMES.values()) >= 250


@pytest.mark.parametrize("family", family_names())
def test_every_model_that_a_family_lists_is_answered_for(family: str) -> None:
    facts = get_family(family).facts
    for name in (
        family,
        family.upper().replace("-", "_"),
        *facts.models,
        *(one.rpartition("/")[2] for one in facts.models),
    ):
        assert get_family(name).facts.name == family, name


async def test_a_folder_that_the_server_names_is_looked_into(tmp_path: Path) -> None:
    path = folder(tmp_path / "merged-7", {"model_type": "qwen2_5_vl"})
    model = await opened(root=str(path))
    assert model.family.facts.name == "qwen2.5-vl"
    assert "config.json" in model.remarks[0]


@pytest.mark.parametrize(
    ("name", "files", "family", "by"),
    [
        ("MAI-UI-2B-awq", {"config": {"model_type": "qwen3_vl"}}, "mai-ui", "MAI-UI-2B-awq"),
        ("a", {"config": {"_name_or_path": "Hcompany/Holo3-35B-A3B"}}, "holo3", "Hcompany/Holo3-35B-A3B"),
        ("ui-tars-1.5-mine", {"config": {"_name_or_path": "Qwen/Qwen2.5-VL-7B-Instruct"}}, "ui-tars-1.5", "ui-tars"),
        ("a", {"config": {"model_type": "qwen3_vl_moe"}}, "qwen3-vl", "config.json"),
        ("a", {"config": {"architectures": ["OpenCUAForConditionalGeneration"]}}, "opencua", "config.json"),
        ("a", {"config": {"model_type": "qwen3_5"}}, "qwen3.5", "config.json"),
        ("a", {"template": "<|vision_start|> <function=x> <parameter=y>"}, "qwen3.5", "chat template"),
        ("a", {"tokenizer_config": {"chat_template": "[gMASK]<|begin_of_image|>"}}, "glm-v", "chat template"),
        (
            "a",
            {"preprocessor_config": {"image_processor_type": "Qwen2VLImageProcessorFast", "patch_size": 16}},
            "qwen3-vl",
            "preprocessor_config.json",
        ),
    ],
)
def test_the_files_of_a_folder_tell_the_family(
    tmp_path: Path, name: str, files: dict[str, Any], family: str, by: str
) -> None:
    found = detect_folder(folder(tmp_path / name, **files))
    assert found is not None
    assert found.family == family
    assert by in found.by


def test_a_snapshot_in_a_cache_is_told_by_the_name_above_it(tmp_path: Path) -> None:
    found = detect_folder(folder(tmp_path / "models--inclusion--UI-TARS-1.5-7B" / "snapshots" / "0a1b"))
    assert found is not None
    assert found.family == "ui-tars-1.5"


@pytest.mark.parametrize("config", ["llama", [], 5, {"model_type": ["qwen3_vl"]}, {"architectures": "x"}, {}])
def test_files_that_tell_nothing_tell_no_family(tmp_path: Path, config: Any) -> None:
    assert detect_folder(folder(tmp_path / "m", config)) is None


def test_a_broken_file_or_no_folder_is_no_family(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(b"\xff{")
    assert detect_folder(tmp_path) is None
    assert detect_folder(tmp_path / "gone") is None
    assert detect_folder(Path("relative")) is None


def test_the_command_tells_the_family_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder(tmp_path / "mine", {"model_type": "glm4v"})
    assert main(["--json", str(path)]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)[0]["name"] == "glm-v"
    assert "by its config.json" in shown.err
