"""What is refused before a start because no start could succeed: templates and adapters."""

import json
from pathlib import Path

import pytest
from stubs.controlled import MIB, Machine, write_weights

from serverctl.models.adapters import check_adapters
from serverctl.models.defects import Place
from serverctl.plan.goal import Goal
from serverctl.process import control
from serverctl.process.request import ServerRequest
from serverctl.process.supervisor.before_start import rendered_by

MARK = {"id": 900, "content": "<image_token_id>"}
TEMPLATE = (
    "{%- for m in messages %}{{ '<|im_start|>' + m.role }}{%- if m.content is string %}{{ m.content }}{%- else %}"
    "{%- for c in m.content %}{%- if c.type == 'image' %}<image_token_id>{%- else %}{{ c.text }}{%- endif %}"
    "{%- endfor %}{%- endif %}{%- endfor %}"
)
WANTS_SYSTEM = "{%- if messages[0].role != 'system' %}{{ raise_exception('no system') }}{%- endif %}" + TEMPLATE


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
