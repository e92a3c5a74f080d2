"""The user's server settings: the `[server]` table of mai-agent's config.toml (docs/configuration.md)."""

import os
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from foundation.command_line import duration
from foundation.configs import check_settings, read_settings
from foundation.errors import UsageError
from serverctl.plan.settings import KNOBS, check_value


class ServerConfig(BaseModel):
    """The `[server]` table. Entries that are no field are vLLM settings for every model."""

    model_config = ConfigDict(extra="allow", strict=True)

    model: str | None = None  # this and the next two: defaults of the same-named options
    preset: str | None = None
    vllm_python: str | None = None
    # the server's port; None for any free port
    port: int | None = Field(None, ge=1, le=65_535, description="It is a number from 1 to 65535.")
    idle: str | None = Field(None, pattern=r"^[1-9]\d*(\.\d+)?[smh]?$", description="Write it like 15m, 90s or 2h.")
    key_file: str | None = None  # this and the next: defaults of the same-named options
    keep_key: bool = False
    swap: list[str] = Field([], description='Write swap = ["NAME"].')
    flags: list[str] = Field([], description='Write flags = ["--seed", "0"].')
    # price of one hour of a card, by its name, in the user's currency
    prices: dict[str, Annotated[float, Field(ge=0)]] = Field({}, description="Write [server.prices] with L4 = 0.70.")
    # vLLM settings for one model, by its name in lower case
    models: dict[str, dict[str, Any]] = Field({}, description='Write [server.models."NAME"] for each model.')

    @property
    def idle_seconds(self) -> float | None:
        """Seconds without a request after which a server sleeps; None for never."""
        return duration(self.idle) if self.idle else None

    def overrides(self, model: str | None) -> dict[str, Any]:
        """Return the settings for a model. Its own override those for every model."""
        return {**(self.model_extra or {}), **self.models.get((model or "").casefold(), {})}


def load_server_config() -> ServerConfig:
    """Read the `[server]` table and MAI_SERVER_VLLM_PYTHON. Raises UsageError that names the error in the file."""
    path, settings = read_settings()
    where = f"In {path}, [server]"
    config = check_settings(ServerConfig, settings.get("server", {}), f"{where}:")
    config.models = {
        model.casefold(): _checked(knobs, f'In {path}, [server.models."{model}"]')
        for model, knobs in config.models.items()
    }
    knobs = config.model_extra or {}
    for name in knobs.keys() - KNOBS.keys():
        names = ", ".join((*ServerConfig.model_fields, *KNOBS))
        raise UsageError(f"{where}: there is no setting {name!r}.", f"Settings are: {names}.")
    knobs.update(_checked(knobs, where))
    config.vllm_python = os.environ.get("MAI_SERVER_VLLM_PYTHON") or config.vllm_python
    return config


def _checked(knobs: Mapping[str, Any], where: str) -> dict[str, Any]:
    return {name: check_value(name, value, where) for name, value in knobs.items()}
