"""What is refused before a start because no start could succeed: names, templates, adapters, cores, limits."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stubs.controlled import MIB, Machine, write_weights

from serverctl.models.adapters import check_adapters
from serverctl.models.defects import Place
from serverctl.plan.goal import Goal
from serverctl.process import control
from serverctl.process.request import ServerRequest
from serverctl.process.supervisor import before_start
from serverctl.process.supervisor.before_start import rendered_by

MARK = {"id": 900, "content": "<image_token_id>"}
TEMPLATE = (
    "{%- for m in messages %}{{ '<|im_start|>' + m.role }}{%- if m.content is string %}{{ m.content }}{%- else %}"
    "{%- for c in m.content %}{%- if c.type == 'image' %}<image_token_id>{%- else %}{{ c.text }}{%- endif %}"
    "{%- endfor %}{%- endif %}{%- endfor %}"
)
WANTS_SYSTEM = "{%- if messages[0].role != 'system' %}{{ raise_exception('no system') }}{%- endif %}" + TEMPLATE


def sources(machine: Machine) -> None:
    """Source files of a vLLM that knows few names."""
    packages = next(machine.python.parent.parent.glob("lib/python*/site-packages"))
    for modules in before_start._NAMED_IN.values():
        for module in modules:
            path = packages / module
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("KNOWN = {'silu': 1, 'gelu_pytorch_tanh': 2, 'default': 3, 'yarn': 4}\n")
    (packages / "vllm/model_executor/models/registry.py").write_text("_M = {'Qwen3VLForConditionalGeneration': 0}\n")


def text_act(config: dict[str, Any]) -> None:
    config["text_config"]["hidden_act"] = "siluu"


def tower_act(config: dict[str, Any]) -> None:
    config["vision_config"]["hidden_act"] = "glu"


def rope(config: dict[str, Any]) -> None:
    config["text_config"]["rope_scaling"] = {"rope_type": "yarm", "factor": 2.0}


def architecture(config: dict[str, Any]) -> None:
    config |= {"architectures": ["Qwen9VLForConditionalGeneration"], "model_type": "qwen9_vl"}


@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        (text_act, "VALUE", "hidden_act 'siluu'"),
        (tower_act, "VALUE", "hidden_act 'glu'"),
        (rope, "VALUE", "rope_type 'yarm'"),
        (architecture, "ARCH", "Qwen9VLForConditionalGeneration"),
    ],
)
def test_a_name_that_vllms_code_does_not_have_costs_no_start(
    machine: Machine, change: Callable[[dict[str, Any]], None], kind: str, said: str
) -> None:
    sources(machine)
    path = machine.model / "config.json"
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config))
    assert said in machine.refused(kind, 0)["title"]


def test_known_names_start(machine: Machine) -> None:
    sources(machine)
    assert machine.up().phase == "ready"


def test_cores_that_are_not_there_cost_no_start(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    there = max(os.sched_getaffinity(0))
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", f"0|{there + 1}-{there + 9}")
    assert f"names core {there + 1}" in machine.refused("VALUE", 0)["title"]


@pytest.mark.parametrize(
    ("text", "cores"), [("0-2,5|7", {0, 1, 2, 5, 7}), ("auto", set()), ("nobind", set()), ("", set())]
)
def test_lists_of_cores_are_read(text: str, cores: set[int]) -> None:
    assert before_start._cores(text) == cores


def test_a_limit_on_addresses_is_told_as_that(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    done = machine.run("up", *machine.small, preexec_fn=limit_addresses)
    assert done.returncode != 0
    assert "ulimit -v" in done.stderr
    assert machine.starts == []


def limit_addresses() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (6 * 1024**3, 6 * 1024**3))


LAYER = "base_model.model.model.language_model.layers.0.self_attn.q_proj"


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ({f"{LAYER}.lora_A.weight": (8, 64), f"{LAYER}.lora_B.weight": (64, 8)}, None),
        ({f"{LAYER}.lora_A.weight": (8, 96), f"{LAYER}.lora_B.weight": (64, 8)}, "matrix of 64 x 96"),
        ({f"{LAYER}.lora_A.weight": (8, 64), f"{LAYER}.lora_B.weight": (64, 4)}, "ranks 8 and 4"),
        ({f"{LAYER}.lora_A.weight": (8, 64)}, "no lora_B"),
        ({"h.0.mlp.lora_A.weight": (8, 64), "h.0.mlp.lora_B.weight": (64, 8)}, "no layer"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["{}={}", '{{"name": "{}", "path": "{}"}}'])
def test_an_adapter_that_fits_no_layer_is_told_and_one_that_fits_is_not(
    machine: Machine, tmp_path: Path, shapes: dict[str, tuple[int, ...]], said: str | None, form: str
) -> None:
    folder = tmp_path / "lora"
    folder.mkdir()
    write_weights(folder / "adapter_model.safetensors", shapes)
    flags = ("--enable-lora", "--lora-modules", form.format("mine", folder))
    found = [what for what, _ in check_adapters(Place(machine.model), flags)]
    assert found == [] if said is None else said in found[0]


@pytest.mark.slow
@pytest.mark.real_vllm
@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ raise_exception('never') }}", "cannot be rendered: never"),
        ("{%- fro m in messages %}{{ m.content }}{%- endfro %}", "cannot be rendered"),
        (TEMPLATE.replace("<image_token_id>", ""), "no place for pictures"),
        (TEMPLATE.replace("<image_token_id>", "<image_tokn_id>"), "does not write <image_token_id>"),
    ],
)
def test_a_template_that_cannot_serve_costs_no_start(
    machine: Machine, vllm_python: Path, template: str, said: str
) -> None:
    (machine.model / "chat_template.jinja").write_text(template)
    for name, entry in (("config.json", {"image_token_id": 900}), ("tokenizer.json", {"added_tokens": [MARK]})):
        path = machine.model / name
        path.write_text(json.dumps({**json.loads(path.read_text()), **entry}))
    goal = Goal(model=str(machine.model), overrides={"kv_cache_memory_bytes": 64 * MIB})
    control.launch("default", ServerRequest(goal, str(vllm_python), processor=True))
    state = machine.wait("default", "failed")
    assert said in str(control.failure_of(state))
    assert state.attempt == 0


@pytest.mark.slow
@pytest.mark.real_vllm
@pytest.mark.parametrize(
    "template", [TEMPLATE, WANTS_SYSTEM, "{% for m in messages %}{{ m.role + m.content }}{% endfor %}"]
)
def test_a_template_that_serves_in_some_form_is_rendered(vllm_python: Path, template: str) -> None:
    found = rendered_by(vllm_python, template, {})
    assert "Hi" in found["plain"]["text"]
    assert "text" in found["picture"] or "m.content" in template
