"""What real starts took on this machine: replaces the planner's seeds, by vLLM version, card, model and settings."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from foundation.files import write_atomically
from serverctl.models.model import Model, Precision
from serverctl.paths import calibration_file
from serverctl.plan.memory import Measured
from serverctl.plan.settings import Settings


def calibration_key(vllm: str, card: str, model: Model, precision: Precision, settings: Settings) -> str:
    """What a measurement holds for: any of these changes the memory that a start takes."""
    parts = (
        vllm,
        card,
        model.name,
        precision,
        f"tp{settings.tensor_parallel_size or 1}",
        f"pp{settings.pipeline_parallel_size or 1}",
        f"edge{settings.longest_edge}",
        f"batched{settings.max_num_batched_tokens}",
        "eager" if settings.enforce_eager else f"graphs{settings.max_cudagraph_capture_size}",
    )
    return "|".join(str(part) for part in parts)


def measured_for(vllm: str, card: str, model: Model, precision: Precision, settings: Settings) -> Measured | None:
    """What was measured for exactly this; None where nothing was, or where the file cannot be read."""
    entry = _read(calibration_file()).get(calibration_key(vllm, card, model, precision, settings))
    if not isinstance(entry, Mapping):
        return None
    sizes = {name: entry.get(name) for name in Measured.__dataclass_fields__}
    known = {name: size for name, size in sizes.items() if type(size) is int and size >= 0}
    return Measured(**known) if known else None


def remember(vllm: str, card: str, model: Model, precision: Precision, settings: Settings, measured: Measured) -> None:
    """Keeps a measurement. A disk that cannot be written costs only the knowledge."""
    path = calibration_file()
    document = _read(path)
    document[calibration_key(vllm, card, model, precision, settings)] = {
        name: value for name, value in asdict(measured).items() if value is not None
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(document, indent=1, sort_keys=True))
    except OSError:
        return


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
