"""Presets: what a person prefers, by one name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foundation.errors import UsageError
from serverctl.plan.settings import check_value


@dataclass(frozen=True, slots=True)
class Preset:
    """One preset of `configs/presets/presets.toml`, whose comments say what each preference means."""

    name: str  # what `--preset` takes
    about: str  # what it is for
    settings: Mapping[str, Any] = field(default_factory=dict)  # automatic values of knobs
    env: Mapping[str, str] = field(default_factory=dict)  # environment variables
    least_sm: int = 0
    tensor_parallel_over_nvlink: bool = False
    replicas: bool = False
    leave: Sequence[str] = ()
    single_card: bool = False
    fp8_kv: bool = False
    small_weights: bool = False
    least_context: int = 0
    longest_context: bool = False


@dataclass(frozen=True, slots=True)
class Presets:
    """All presets by name."""

    default: str
    by_name: Mapping[str, Preset]

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> "Presets":
        """The presets in the document of their file."""
        entries = {name: entry for name, entry in document.items() if isinstance(entry, dict)}
        return cls(document["default"], {name: _preset(name, entry) for name, entry in entries.items()})

    def get(self, name: str | None) -> Preset:
        """A preset by its name, or the default one. Raises UsageError for an unknown name."""
        found = self.by_name.get(name or self.default)
        if found is None:
            raise UsageError(f"There is no preset {name!r}.", f"Presets are: {', '.join(self.by_name)}.")
        return found


def _preset(name: str, entry: Mapping[str, Any]) -> Preset:
    settings = {knob: check_value(knob, value, f"preset {name}") for knob, value in entry.get("settings", {}).items()}
    return Preset(name, entry["about"], settings, entry.get("env", {}), **entry.get("prefer", {}))
