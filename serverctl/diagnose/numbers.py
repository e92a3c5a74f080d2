"""The numbers and names that a failure's evidence holds."""

import re
from typing import Any

from foundation.configs import load_config
from serverctl.diagnose.failures import Kind

#: By class; the groups of a text are what it names.
_TEXTS: dict[str, tuple[re.Pattern[str], ...]] = {
    kind: tuple(re.compile(text, re.DOTALL) for text in entry["texts"])
    for entry in load_config("vllm/failures.toml")["numbers"]
    for kind in entry["kinds"]
}
_NAMES = frozenset({"architecture", "error", "flag", "model", "model_type", "module"})


def numbers(kind: Kind, text: str) -> dict[str, Any]:
    """What the evidence of a class names."""
    if kind is Kind.FLAG:
        return {"flags": text.split("unrecognized arguments:", 1)[-1].split()}
    matches = (match for pattern in _TEXTS.get(kind.value, ()) if (match := pattern.search(text)))
    found = {name: _read(name, said) for match in matches for name, said in match.groupdict().items()}
    # vLLM rounds to hundredths of a GiB: what is left of a small KV cache is no number.
    return {name: value for name, value in found.items() if value != 0.0 or kind is not Kind.KV_SHORT}


def _read(name: str, text: str) -> Any:
    if name in _NAMES:
        return text
    if name.endswith("_gib"):
        number, _, unit = text.partition(" ")
        return round(float(number) / (1024 if unit == "MiB" else 1), 3)
    return float(text) if name == "utilization" else int(text)
