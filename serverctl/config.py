"""The person's own server settings: the `[server]` table of mai-agent's config.toml.

[server]
model = "MAI-UI-8B"
preset = "latency"
vllm_python = "~/vllm/bin/python"
port = 8123
max_model_len = 16384            # any knob, for every model
flags = ["--seed", "0"]          # vLLM's own flags, passed on as they are

[server.models."MAI-UI-2B"]      # knobs for one model
max_num_seqs = 8
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from foundation.errors import UsageError
from foundation.settings_file import check_settings, read_settings, settings_path
from serverctl.plan.settings import KNOBS, check_value

if TYPE_CHECKING:
    from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """What a person wrote down."""

    model: str | None = None  # as on the command line, as the two below
    preset: str | None = None
    vllm_python: str | None = None
    port: int | None = None  # where the server listens; None for a free one
    flags: Sequence[str] = ()  # vLLM's own flags
    knobs: Mapping[str, Any] = field(default_factory=dict)  # values for every model
    # Values for one model, by its name in lower case.
    by_model: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def overrides(self, model: str | None) -> dict[str, Any]:
        """The person's values for a model: its own win over those for every model."""
        own = self.by_model.get(model.casefold(), {}) if model else {}
        return {**self.knobs, **own}


def load_server_config() -> ServerConfig:
    """The `[server]` table, and MAI_SERVER_VLLM_PYTHON. Raises UsageError naming what is wrong in the file."""
    path = settings_path()
    config = parse_server_table(read_settings(path).get("server", {}), str(path))
    python = os.environ.get("MAI_SERVER_VLLM_PYTHON")
    return replace(config, vllm_python=python) if python else config


def parse_server_table(table: Any, origin: str) -> ServerConfig:
    """The `[server]` table, checked. Raises UsageError naming the entry."""
    if not table and isinstance(table, dict):
        return ServerConfig()
    where = f"In {origin}, [server]"
    checked = check_settings(_schema(), table, f"{where}:")
    found = checked.model_dump(exclude_unset=True)
    by_model = {
        model.casefold(): {
            knob: check_value(knob, value, f'In {origin}, [server.models."{model}"]') for knob, value in entry.items()
        }
        for model, entry in found.pop("models", {}).items()
    }
    known = {name: found.pop(name) for name in type(checked).model_fields if name in found}
    for name in found.keys() - KNOBS.keys():
        names = ", ".join((*type(checked).model_fields, *KNOBS))
        raise UsageError(f"{where}: there is no setting {name!r}.", f"Settings are: {names}.")
    return ServerConfig(
        knobs={knob: check_value(knob, value, where) for knob, value in found.items()}, by_model=by_model, **known
    )


@cache
def _schema() -> "type[BaseModel]":
    """What may stand in the table beside knobs, which have their own check."""
    from pydantic import BaseModel, ConfigDict, Field

    class ServerTable(BaseModel):
        model_config = ConfigDict(extra="allow", strict=True)

        model: str | None = None
        preset: str | None = None
        vllm_python: str | None = None
        port: int | None = Field(None, ge=1, le=65_535, description="It is a number from 1 to 65535.")
        flags: list[str] = Field([], description='Write flags = ["--seed", "0"].')
        models: dict[str, dict[str, Any]] = Field({}, description='Write [server.models."NAME"] for each model.')

    return ServerTable
