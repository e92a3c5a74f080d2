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
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import platformdirs

from foundation.errors import UsageError
from serverctl.plan.settings import KNOBS, check_value

_TEXTS = ("model", "preset", "vllm_python")


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """What a person wrote down.

    Args:
        model, preset, vllm_python: as on the command line.
        port: where the server listens; None for a free one.
        flags: vLLM's own flags.
        knobs: values for every model.
        by_model: values for one model, by its name in lower case.
        path: where it was read, for messages.
    """

    model: str | None = None
    preset: str | None = None
    vllm_python: str | None = None
    port: int | None = None
    flags: tuple[str, ...] = ()
    knobs: Mapping[str, Any] = field(default_factory=dict)
    by_model: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    path: str = ""

    def overrides(self, model: str | None) -> dict[str, Any]:
        """The person's values for a model: its own win over those for every model."""
        own = self.by_model.get(model.casefold(), {}) if model else {}
        return {**self.knobs, **own}


def config_path(environ: Mapping[str, str] | None = None) -> Path:
    """The same file that mai-agent reads: MAI_AGENT_CONFIG, or the user's configuration folder."""
    named = (os.environ if environ is None else environ).get("MAI_AGENT_CONFIG")
    return Path(named) if named else Path(platformdirs.user_config_dir("mai-agent", appauthor=False)) / "config.toml"


def load_server_config(path: Path | None = None) -> ServerConfig:
    """The `[server]` table, and MAI_SERVER_VLLM_PYTHON. Raises UsageError naming what is wrong in the file."""
    path = path or config_path()
    python = os.environ.get("MAI_SERVER_VLLM_PYTHON")
    if not path.is_file():
        return ServerConfig(vllm_python=python)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("server", {})
    except (OSError, ValueError) as error:
        raise UsageError(f"The settings in {path} cannot be read: {error}.", "Mend or remove the file.") from error
    config = parse_server_table(table, str(path))
    return replace(config, vllm_python=python) if python else config


def parse_server_table(table: Any, origin: str) -> ServerConfig:
    """The `[server]` table, checked. Raises UsageError naming the entry."""
    if not isinstance(table, dict):
        raise UsageError(f"In {origin}, server must be a table.", "Write [server].")
    texts: dict[str, str] = {}
    knobs: dict[str, Any] = {}
    by_model: dict[str, dict[str, Any]] = {}
    port: int | None = None
    flags: tuple[str, ...] = ()
    for name, value in table.items():
        where = f"In {origin}, [server]"
        if name in _TEXTS:
            if not isinstance(value, str):
                raise UsageError(f"{where}: {name} must be a text.", f'Write {name} = "...".')
            texts[name] = value
        elif name == "port":
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 65_535:
                raise UsageError(f"{where}: port cannot be {value!r}.", "It is a number from 1 to 65535.")
            port = value
        elif name == "flags":
            if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
                raise UsageError(f"{where}: flags must be a list of texts.", 'Write flags = ["--seed", "0"].')
            flags = tuple(value)
        elif name == "models":
            if not isinstance(value, dict) or not all(isinstance(entry, dict) for entry in value.values()):
                raise UsageError(f"{where}: models must hold a table for each model.", 'Write [server.models."NAME"].')
            for model, entry in value.items():
                place = f'In {origin}, [server.models."{model}"]'
                by_model[model.casefold()] = {knob: check_value(knob, given, place) for knob, given in entry.items()}
        elif name in KNOBS:
            knobs[name] = check_value(name, value, where)
        else:
            known = ", ".join((*_TEXTS, "port", "flags", "models", *KNOBS))
            raise UsageError(f"{where}: there is no setting {name!r}.", f"Settings are: {known}.")
    return ServerConfig(
        texts.get("model"), texts.get("preset"), texts.get("vllm_python"), port, flags, knobs, by_model, origin
    )
