"""Refuses a start that cannot succeed: this vLLM does not know the model, or this machine lacks something."""

import ast
import json
import os
import re
import resource
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from serverctl.hardware.facts import GIB
from serverctl.models.adapters import check_adapters, flag_values
from serverctl.models.defects import BrokenFileError, Place, read_object
from serverctl.models.files import NoStartError, place_of, refuse_unknown_method
from serverctl.plan.goal import Plan
from serverctl.plan.settings import names_flag
from serverctl.process.request import Prepared
from serverctl.process.state import has_room

_LAYERS = "vllm/model_executor/layers"
#: For entries of config.json, the source files that contain all their valid values.
_NAMED_IN: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("hidden_act", "hidden_activation"): (f"{_LAYERS}/activation.py", "transformers/activations.py"),
    ("rope_type",): (
        f"{_LAYERS}/rotary_embedding/__init__.py",
        "transformers/modeling_rope_utils.py",
        "vllm/transformers_utils/config.py",
    ),
    ("architectures",): ("vllm/model_executor/models/registry.py", "transformers/models/auto/modeling_auto.py"),
}
#: User flags that override config.json, or let the model bring its own code.
_OTHER_CODE = ("--hf-overrides", "--trust-remote-code", "--model-impl", "--config-format")
_BIND = "VLLM_CPU_OMP_THREADS_BIND"
#: Address space of vLLM's libraries and threads beside weights and cache, bytes.
_LIBRARIES = 8 * GIB


def refuse_hopeless(prepared: Prepared, python: Path, environ: Mapping[str, str]) -> None:
    """Raise NoStartError for the first reason why no start can succeed."""
    plan = prepared.plan
    refuse_unknown_method(plan.model, prepared.capabilities.quantizations)
    _machine(plan, environ)
    place = place_of(plan.model)
    if place is None:
        return
    with suppress(BrokenFileError, OSError):  # the check of the files reports these
        if not names_flag(plan.extra, *_OTHER_CODE):
            _names(place, read_object(place, "config.json"), python, prepared.capabilities.version)
        _template(place, plan, python)
    for what, remedy in check_adapters(place, plan.extra):
        raise NoStartError("VALUE", f"{what}.", remedy)


def _machine(plan: Plan, environ: Mapping[str, str]) -> None:
    folder = Path(tempfile.gettempdir())
    if not has_room(folder):
        text = "Free some space there, or name another folder with TMPDIR."
        raise NoStartError("DISK", f"The disk of temporary files is full: {folder}.", text)
    limit = resource.getrlimit(resource.RLIMIT_AS)[1]
    needed = plan.budget.weights + max(0, plan.budget.kv) + _LIBRARIES
    if limit not in (resource.RLIM_INFINITY, -1) and limit < needed:
        raise NoStartError(
            "HOST_OOM",
            f"A program here may have {limit / GIB:.1f} GiB of addresses (ulimit -v), and vLLM needs about "
            f"{needed / GIB:.0f} GiB.",
            "Start from a shell without that limit: `ulimit -v unlimited`, or ask who set it.",
        )
    binding, ours = environ.get(_BIND, ""), sorted(os.sched_getaffinity(0))
    missing = sorted(_cores(binding) - {*ours}) if plan.vendor == "cpu" else []
    if missing:
        together = f"{ours[0]} to {ours[-1]}" if len(ours) == ours[-1] - ours[0] + 1 else str(ours)
        raise NoStartError(
            "VALUE",
            f"{_BIND}={binding} names core {missing[0]}, and this program may use {together}.",
            f"Unset {_BIND}, or name cores that are there.",
        )


def _cores(text: str) -> set[int]:
    """Return the cores in a list such as 0-3,8|4-7; empty if it is a word."""
    found: set[int] = set()
    for part in re.split(r"[|,]", text):
        match = re.fullmatch(r"\s*(\d{1,5})(?:-(\d{1,5}))?\s*", part)
        if match:
            found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return found


def _names(place: Place, config: Mapping[str, Any], python: Path, version: str) -> None:
    """Compare the names in config.json with those in vLLM's source."""
    for entries, modules in _NAMED_IN.items():
        known = words_in(python, *modules)
        for entry, name in _said(config, entries):
            if known and name not in known and not config.get("auto_map"):
                what = f"config.json in {place.name} says {entry} {name[:60]!r}, which vLLM {version} does not know."
                kind = "ARCH" if entry == "architectures" else "VALUE"
                raise NoStartError(kind, what, "Is it misspelt? Otherwise `mai-server install` may have a newer vLLM.")


def _said(value: Any, entries: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the names that some entries of config.json have, at any depth."""
    for key, each in value.items():
        if key in entries:
            names = each if isinstance(each, list) else [each]
            yield from ((key, name) for name in names if isinstance(name, str))
        elif isinstance(each, Mapping):
            yield from _said(each, entries)


def _template(place: Place, plan: Plan, python: Path) -> None:
    """Render the chat template that vLLM would use."""
    file, text = _chosen_template(place, plan.extra)
    if not text:
        return
    settings = _object(place, "tokenizer_config.json")
    tokens = {name: _content(value) for name, value in settings.items() if name.endswith("_token")}
    found = rendered_by(python, text, {name: token for name, token in tokens.items() if token})
    errors = [each["error"] for each in found.values() if "error" in each]
    if errors and len(errors) == len(found):
        what = f"{file} in {place.name} cannot be rendered: {errors[0][:200]}."
        raise NoStartError("CORRUPT", what, "Mend it, or give another one: -- --chat-template FILE.")
    picture, parts = (found.get(name, {}).get("text") for name in ("picture", "parts"))
    if picture is None or parts is None or "'type':" in picture or plan.model.shape.vision is None:
        return  # the template is for plain text: vLLM inserts the pictures itself
    mark = _image_mark(place)
    if picture == parts or (mark and mark not in picture):
        writes = f"does not write {mark}" if mark else "writes nothing"
        what = f"{file} in {place.name} has no place for pictures: it {writes} for them."
        raise NoStartError("CORRUPT", what, "Put that of the model's repository there again.")


def _chosen_template(place: Place, flags: Sequence[str]) -> tuple[str, str]:
    """Return the name and the text of the template that vLLM uses; empty texts if no file has it."""
    for value in flag_values(flags, "--chat-template"):
        path = Path(value).expanduser()
        return (value, path.read_text(encoding="utf-8")) if path.is_file() else ("", "")
    jinja = place.folder / "chat_template.jinja"
    if jinja.is_file():
        return jinja.name, jinja.read_text(encoding="utf-8", errors="replace")
    for name in ("chat_template.json", "tokenizer_config.json"):
        text = _object(place, name).get("chat_template")
        if isinstance(text, str):
            return name, text
    return "", ""


def _object(place: Place, file: str) -> Mapping[str, Any]:
    try:
        return read_object(place, file)
    except (BrokenFileError, OSError):
        return {}


def _content(token: object) -> str:
    text = token.get("content") if isinstance(token, Mapping) else token
    return text if isinstance(text, str) else ""


def _image_mark(place: Place) -> str:
    """Return the text of the token that stands for a picture; "" if it is unknown."""
    number = _object(place, "config.json").get("image_token_id")
    added = _object(place, "tokenizer.json").get("added_tokens")
    marks = [each for each in added if isinstance(each, Mapping) and each.get("id") == number] if added else []
    return _content(marks[0]) if marks and number is not None else ""


_RENDER = Path(__file__).parents[2] / "vllm" / "render_template.py"
#: Timeout for rendering a template, seconds. A template that takes longer is not judged.
_RENDER_SECONDS = 30.0


@cache
def words_in(python: Path, *modules: str) -> frozenset[str]:
    """Return all string constants of some modules, "vllm/model_executor/x.py"; none if one of them is not there."""
    found: set[str] = set()
    for module in modules:
        path = next(iter(sorted(python.parent.parent.glob(f"lib/python*/site-packages/{module}"))), None)
        try:
            tree = ast.parse(path.read_text(encoding="utf-8")) if path else None
        except (OSError, ValueError, SyntaxError):
            tree = None
        if tree is None:
            return frozenset()
        nodes = ast.walk(tree)
        found |= {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return frozenset(found)


def rendered_by(python: Path, template: str, variables: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
    """Return the "text" or "error" of each conversation that `render_template.py` tries; empty if it cannot run."""
    request = json.dumps({"template": template, "variables": dict(variables)})
    with suppress(OSError, ValueError, subprocess.TimeoutExpired):
        done = subprocess.run(
            [str(python), "-I", str(_RENDER)], input=request, capture_output=True, text=True, errors="replace",
            timeout=_RENDER_SECONDS, check=False,
        )  # fmt: skip
        found: Any = json.loads(done.stdout) if done.returncode == 0 else {}
        return found if isinstance(found, dict) else {}
    return {}
