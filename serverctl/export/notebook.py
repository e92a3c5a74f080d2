"""A Colab notebook for a card: installs the vLLM for the machine's driver, serves the plan, asks about one screenshot.

The flags of both builds of vLLM are made here, each against its own parser, because only the borrowed machine knows
which build its driver takes.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pprint import pformat
from typing import Any

from foundation.errors import UsageError
from foundation.families import family_data, family_folder, family_names
from foundation.templates import template
from serverctl.diagnose.stages import Stage
from serverctl.export.common import Document, Source, flag_groups, program_words
from serverctl.hardware.facts import GIB, CannotPlanError
from serverctl.planning import plan_for
from serverctl.process import api_key_gate as gate
from serverctl.vllm.builds import Build, builds
from serverctl.vllm.capabilities import snapshot

#: Cards that Colab offers, by the names it has for them.
_COLAB = re.compile(r"\b(T4|L4|A100|H100)\b")


def documents(source: Source) -> Sequence[Document]:
    """The notebook. Raises UsageError or CannotPlanError if no build of vLLM can serve the plan."""
    source.check_portable("A notebook")
    if source.plan.vendor != "nvidia":
        raise UsageError("Notebooks are for NVIDIA cards.", "Name one: --gpu T4, L4, A100-40, A100-80, H100 or B200.")
    plans = _plans(source)
    text = json.dumps(_notebook(source, plans), indent=1, ensure_ascii=False, sort_keys=True)
    return [Document(f"{source.name}.ipynb", text + "\n")]


def _plans(source: Source) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    refusals: list[CannotPlanError] = []
    for build in (build for build in builds() if build.least_driver is not None):
        try:
            found[build.name] = _plan(source, build)
        except CannotPlanError as error:
            refusals.append(error)
    if not found:
        raise refusals[0]
    return found


def _plan(source: Source, build: Build) -> dict[str, Any]:
    goal = replace(source.goal, model=source.goal.model or source.plan.model.name)
    plan = plan_for(source.hardware, goal, build.version)
    here = replace(source, plan=plan, capabilities=snapshot(build.version), served_name=source.model)
    command = here.servers()[0].command
    return {
        "package": build.packages[0],
        "python_most": build.python_most,
        "least_driver": build.least_driver,
        "least_cuda": build.least_cuda,
        # The program's place is known only after the installation.
        "command": program_words(command)[1:],
        "flags": [" ".join(group) if len(group) == 1 else tuple(group) for group in flag_groups(command)],
        "env": {name: value for name, value in command.env.items() if name != "PYTHONPATH"},
        "notes": [*plan.warnings, *command.dropped],
    }


def _notebook(source: Source, plans: dict[str, dict[str, Any]]) -> dict[str, Any]:
    plan = source.plan
    card = plan.gpus[0]
    weights = plan.model.weight_bytes(plan.model.own_precision) / GIB
    prompts = family_folder("mai-ui") / "prompt.toml"
    values = {
        "@HEADER@": "\n".join(f"> {line}".rstrip() + "  " for line in source.header()),
        "@HEADER_COMMENT@": f"# Made by: {source.made_by}",
        "@CARD@": card.name,
        "@CARD_REPR@": repr(card.name),
        "@CARD_MIB@": str(int(card.total_bytes / 2**20)),
        "@CARDS@": str(len(plan.gpus)),
        "@MODEL@": source.model,
        "@MODEL_REPR@": repr(source.model),
        "@WEIGHTS@": f"{weights:.0f}",
        "@PORT@": str(source.port),
        "@GATE_REPR@": pformat(gate.source(), width=116),
        "@DIVISOR@": str(_divisor(plan.model.family)),
        "@SYSTEM@": tomllib.loads(prompts.read_text(encoding="utf-8"))["grounding"],
        "@CONTEXT@": f"{plan.context:,}",
        "@IMAGES@": str(plan.settings.images),
        "@STAGES@": pformat(_stages(), width=116),
        "@PLANS@": pformat(plans, width=110, sort_dicts=False),
    }
    colab = _COLAB.search(card.name)
    return {
        "cells": list(_cells(values)),
        "metadata": {
            "accelerator": "GPU",
            "colab": {"provenance": [], **({"gpuType": colab[1]} if colab else {})},
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _divisor(family: str | None) -> int | None:
    """The grid of a family's grounding answers; None if they are pixels of the resized picture, or unknown."""
    data = family_data(family) if family in family_names() else {}
    divisor = data.get("grid", {}).get("grounding")
    return divisor if isinstance(divisor, int) else None


def _stages() -> list[tuple[str, str]]:
    """Return, for each stage of a start in order, the pattern of its line in vLLM's log, and its words."""
    stages = [stage for stage in Stage if stage is not Stage.LAUNCHED]  # no log line shows that stage
    return [(stage.mark.pattern.removeprefix("^").replace("|^", "|"), stage.words) for stage in stages]


def _cells(values: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The cells of the template: texts with their headings, and code blocks with their names."""
    text = template("notebook.md", values)
    introduction, text = re.split(r"\n(?=## )", text, maxsplit=1)
    yield _cell("introduction", "markdown", introduction)
    for about, name, code in re.findall(r"(.*?)^```python (\S+)\n(.*?)^```\n", text, re.MULTILINE | re.DOTALL):
        yield _cell(f"{name}-text", "markdown", about)
        yield _cell(name, "code", code) | {"execution_count": None, "outputs": []}


def _cell(name: str, kind: str, text: str) -> dict[str, Any]:
    lines = text.strip("\n").splitlines(keepends=True)
    return {"cell_type": kind, "id": name, "metadata": {}, "source": lines}
