"""Refuses a start that cannot succeed: a chat template or adapter that cannot serve, or a full disk."""

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from serverctl.models.adapters import check_adapters, flag_values
from serverctl.models.defects import BrokenFileError, Place, read_object
from serverctl.models.files import NoStartError, place_of
from serverctl.plan.goal import Plan
from serverctl.process.request import Prepared
from serverctl.process.state import has_room


def refuse_hopeless(prepared: Prepared, python: Path) -> None:
    """Raise NoStartError for the first reason why no start can succeed."""
    plan = prepared.plan
    folder = Path(tempfile.gettempdir())
    if not has_room(folder):
        text = "Free some space there, or name another folder with TMPDIR."
        raise NoStartError("DISK", f"The disk of temporary files is full: {folder}.", text)
    place = place_of(plan.model)
    if place is None:
        return
    with suppress(OSError):  # the check of the files reports these
        _template(place, plan, python)
    for what, remedy in check_adapters(place, plan.extra):
        raise NoStartError("VALUE", f"{what}.", remedy)


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
