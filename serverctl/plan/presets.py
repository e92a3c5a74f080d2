"""The presets of `configs/presets/presets.toml`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foundation.configs import load_config
from foundation.errors import UsageError
from serverctl.plan.settings import check_value


@dataclass(frozen=True, slots=True)
class Preset:
    """One preset: automatic values of knobs, environment variables, and what it prefers in decisions."""

    name: str
    about: str
    settings: Mapping[str, Any]
    env: Mapping[str, str]
    least_sm: int
    tensor_parallel_over_nvlink: bool
    replicas: bool
    leave: tuple[str, ...]
    single_card: bool
    fp8_kv: bool
    small_weights: bool
    least_context: int
    longest_context: bool


def preset_names() -> list[str]:
    """The names that `--preset` takes."""
    return [name for name, value in load_config("presets/presets.toml").items() if isinstance(value, dict)]


def load_preset(name: str | None) -> Preset:
    """A preset by its name, or the default one. Raises UsageError for an unknown name."""
    data = load_config("presets/presets.toml")
    chosen = name or data["default"]
    entry = data.get(chosen)
    if not isinstance(entry, dict):
        raise UsageError(f"There is no preset {name!r}.", f"Presets are: {', '.join(preset_names())}.")
    prefer = entry.get("prefer", {})
    settings = {knob: check_value(knob, value, f"preset {chosen}") for knob, value in entry.get("settings", {}).items()}
    return Preset(
        name=chosen,
        about=entry["about"],
        settings=settings,
        env=entry.get("env", {}),
        least_sm=prefer.get("least_sm", 0),
        tensor_parallel_over_nvlink=prefer.get("tensor_parallel_over_nvlink", False),
        replicas=prefer.get("replicas", False),
        leave=tuple(prefer.get("leave", ())),
        single_card=prefer.get("single_card", False),
        fp8_kv=prefer.get("fp8_kv", False),
        small_weights=prefer.get("small_weights", False),
        least_context=prefer.get("least_context", 0),
        longest_context=prefer.get("longest_context", False),
    )
