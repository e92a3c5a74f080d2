"""Answers names that vLLM no longer has with what they are called now (`configs/vllm/gone.toml`)."""

from collections.abc import Iterator, Mapping
from functools import cache

from foundation.configs import load_config
from serverctl.vllm.capabilities import Capabilities


@cache
def _gone() -> Mapping[str, Mapping[str, str]]:
    data = load_config("vllm/gone.toml")
    return {"flags": data["flags"], "variables": data["variables"], **data["values"]}


def flag_now(flag: str) -> str | None:
    """Return a sentence on what an earlier flag is called now; None if nothing is known of it."""
    return _gone()["flags"].get(flag.replace("_", "-").lower())


def value_now(setting: str, value: object) -> str | None:
    """Return a sentence on what to use instead of a value that a setting no longer takes; None if there is none."""
    return _gone().get(setting, {}).get(str(value).upper()) if setting not in ("flags", "variables") else None


def variables_now(environ: Mapping[str, str], capabilities: Capabilities, plugin: frozenset[str]) -> Iterator[str]:
    """Yield a sentence for each variable that is set and that this vLLM does not read, if its successor is known.

    `plugin` are the variables that vLLM's plugin for the hardware reads.
    """
    for name, now in _gone()["variables"].items():
        if name in environ and not capabilities.reads(name) and name not in plugin:
            yield f"{name} is set, and vLLM {capabilities.version} does not read it: {now}."
