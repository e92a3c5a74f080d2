"""What real starts took on this machine, kept on disk: replaces the planner's seeds."""

from dataclasses import asdict, fields
from typing import Any

from foundation.files import keep_json, read_json_object
from serverctl.models.model import Model, Precision
from serverctl.paths import calibration_file
from serverctl.plan.memory import Measured, measurement_key
from serverctl.plan.settings import Settings


def read_measurements() -> dict[str, Measured]:
    """Every measurement by its `measurement_key`; none where the file cannot be read."""
    entries = {key: entry for key, entry in read_json_object(calibration_file()).items() if isinstance(entry, dict)}
    found = {key: _measured(entry) for key, entry in entries.items()}
    return {key: measured for key, measured in found.items() if measured != Measured()}


def _measured(entry: dict[str, Any]) -> Measured:
    sizes = {field.name: entry.get(field.name) for field in fields(Measured)}
    return Measured(**{name: size for name, size in sizes.items() if type(size) is int and size >= 0})


def remember(vllm: str, card: str, model: Model, precision: Precision, settings: Settings, measured: Measured) -> None:
    """Keeps a measurement."""
    known = {name: value for name, value in asdict(measured).items() if value is not None}
    document = read_json_object(calibration_file()) | {measurement_key(vllm, card, model, precision, settings): known}
    keep_json(calibration_file(), document)
