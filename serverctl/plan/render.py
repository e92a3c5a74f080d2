"""Turns a plan into a command for one version of vLLM: checks every flag and lists what that version does not have."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serverctl.plan.goal import Plan, Reason
from serverctl.plan.kinds.gaudi import PLUGIN_ENV, SIZES, largest_size
from serverctl.plan.settings import KNOBS, flag_text
from serverctl.plan.user_flags import check_choice, check_extra, json_object
from serverctl.vllm.capabilities import Capabilities

#: Flags of every plan: value (None for a switch), reason, source.
COMMON: Mapping[str, tuple[str | None, str, str]] = {
    "--generation-config": ("vllm", "sampling is the agent's, not the repository's", "docs/serving.md"),
    "--api-server-count": ("1", "several would share the port silently, and split the image cache", "docs/serving.md"),
    "--disable-access-log-for-endpoints": ("/health,/metrics", "keeps the log to what matters", "docs/serving.md"),
    "--shutdown-timeout": ("5", "requests in flight get five seconds", "docs/serving.md"),
    "--disable-fastapi-docs": (None, "nobody here reads /docs and /openapi.json", "docs/safety.md"),
    "--allowed-media-domains": ("none.invalid", "pictures come as data: the server fetches nothing", "docs/safety.md"),
    "--enable-prompt-tokens-details": (None, "answers say how many tokens the prefix cache gave", "docs/serving.md"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One flag of the command line, with its reason."""

    flag: str
    value: str | None
    reason: Reason
    knob: str | None = None

    @property
    def words(self) -> list[str]:
        """The flag as arguments."""
        if self.value is None:
            return [self.flag]
        # A value with a leading dash, such as the model folder "-mine", would be parsed as a flag.
        return [f"{self.flag}={self.value}"] if self.value.startswith("-") else [self.flag, self.value]


@dataclass(frozen=True, slots=True)
class Command:
    """A vLLM command line with its environment."""

    lines: tuple[Line, ...]  # flags in order, with their reasons
    model: str  # the positional argument
    extra: tuple[str, ...]  # the user's own flags
    env: Mapping[str, str]  # environment variables
    dropped: tuple[str, ...] = ()  # sentences about flags and variables that this vLLM does not have
    module: bool = False  # whether vLLM is run as a module because its console script does not work

    @property
    def flags(self) -> list[str]:
        """All flags, the user's own last."""
        return [word for line in self.lines for word in line.words] + list(self.extra)

    def argv(self, python: Path | str | None = None) -> list[str]:
        """Return the command line for an environment's Python. Without one, return a plain `vllm serve` for display."""
        if self.module:
            return [
                str(python or "python"), "-m", "vllm.entrypoints.openai.api_server", "--model", self.model, *self.flags
            ]  # fmt: skip
        program = "vllm" if python is None else str(Path(python).with_name("vllm"))
        return [program, "serve", self.model, *self.flags]


def render(plan: Plan, capabilities: Capabilities, port: int, served_name: str | None = None) -> Command:
    """Build the command for a plan. Clients call the model by `served_name`, or by its own name if None.

    Raises:
        UsageError: a user flag is unknown to this vLLM or reserved for the controller, or this vLLM rejects its value.
    """
    fixed = Reason("one server, on this machine only", "docs/safety.md")
    lines = [
        Line("--served-model-name", served_name or plan.model.name, Reason("what clients call it", "models")),
        Line("--host", "127.0.0.1", fixed),
        Line("--port", str(port), fixed),
    ]
    lines += [Line(flag, value, Reason(text, source)) for flag, (value, text, source) in COMMON.items()]
    for name, value in plan.settings.given().items():
        if (found := _flag(name, value, plan, capabilities)) is not None:
            lines.append(Line(*found, plan.reasons.get(name, Reason("planned", "plan")), name))
    loads = plan.settings.quantization and plan.model.own_precision == "16-bit" != plan.precision
    if loads and plan.model.shape.vision and not plan.model.only_experts:
        text = "the vision tower stays in 16 bits: grounding depends on it"
        value = json.dumps({"ignore": ["visual.*"]}, separators=(",", ":"))
        lines.append(Line("--quantization-config", value, Reason(text, "docs/serving.md")))
    own = _with_planned(check_extra(plan.extra, capabilities), lines)
    flags = [word.split("=")[0] for word in own if word.startswith("--")]
    mine = {capabilities.options[flag].flag if flag in capabilities.options else flag for flag in flags}
    parts = {flag.split(".")[0] for flag in flags if "." in flag}
    kept: list[Line] = []
    dropped: list[str] = []
    for line in lines:
        if not line.reason.automatic and line.value is not None:
            check_choice(line.flag, line.value, own, capabilities)
        if not capabilities.has(line.flag):
            option = f"{line.flag} {line.value or ''}".strip()
            dropped.append(f"{option}: vLLM {capabilities.version} has no such flag ({line.reason.text}).")
        elif line.flag in parts and (line.value or "").startswith("{"):
            kept += [part for part in _dotted(line) if part.flag not in flags]
        elif line.flag not in mine:
            kept.append(line)
    read = {name for name in plan.env if capabilities.reads(name) or (plan.vendor == "gaudi" and name in PLUGIN_ENV)}
    env = {name: value for name, (value, _) in plan.env.items() if name in read}
    dropped += [f"{name}: vLLM {capabilities.version} does not read it." for name in plan.env if name not in read]
    return Command(tuple(kept), plan.model.source, own, env, tuple(dropped), module=not capabilities.console_script)


def _with_planned(own: Sequence[str], lines: Sequence[Line]) -> tuple[str, ...]:
    """Complete JSON values of the user's flags with the plan's entries: vLLM takes one value of a flag, not both."""
    words: list[str] = []
    for word in own:
        flag, sign, value = word.partition("=") if word.startswith("--") else (words[-1] if words else "", "", word)
        planned = next((json_object(line.value or "") for line in lines if line.flag == flag), None)
        own_values = json_object(value) if planned else None
        if planned and own_values is not None:
            word = f"{flag}=" * bool(sign) + flag_text(_merged(planned, own_values))  # noqa: PLW2901
        words.append(word)
    return tuple(words)


def _merged(planned: Mapping[str, Any], own_values: Mapping[str, Any]) -> dict[str, Any]:
    """Merge JSON objects; `own_values` wins."""
    return {
        name: _merged(value, own_values[name])
        if isinstance(value, dict) and isinstance(own_values.get(name), dict)
        else own_values.get(name, value)
        for name, value in planned.items()
    } | {name: value for name, value in own_values.items() if name not in planned}


def _dotted(line: Line) -> list[Line]:
    """Split a flag with a JSON value into dotted flags, one per entry.

    vLLM merges the user's dotted flags with other dotted flags, but not with a JSON value.
    """

    def entries(prefix: str, value: Any) -> list[tuple[str, str]]:
        if isinstance(value, dict):
            return [pair for name, inner in value.items() for pair in entries(f"{prefix}.{name}", inner)]
        return [(prefix, value if isinstance(value, str) else flag_text(value))]

    pairs = entries(line.flag, json.loads(line.value or "{}"))
    return [Line(flag, value, line.reason, line.knob) for flag, value in pairs]


def _flag(name: str, value: Any, plan: Plan, capabilities: Capabilities) -> tuple[str, str | None] | None:
    """Return the flag and value for a setting. The value of a switch is None. Return None to emit no flag."""
    knob = KNOBS[name]
    match name:
        case "images":
            limit: dict[str, Any] = {"image": value, "video": 0}
            if plan.vendor == "gaudi":
                width, height = largest_size(plan.env[SIZES][0])
                limit["image"] = {"count": value, "width": width, "height": height}
            return knob.flag, flag_text(limit)
        case "longest_edge":
            return knob.flag, flag_text({"size": {"shortest_edge": plan.model.min_pixels, "longest_edge": value}})
        case "quantization" if capabilities.quantizations and value not in capabilities.quantizations:
            # Before vLLM 0.28, online quantization was called fp8 at every granularity.
            return knob.flag, "fp8" if value in ("fp8_per_channel", "fp8_per_tensor") else value
    if knob.kind == "switch":
        if value:
            return knob.flag, None
        negative = f"--no-{knob.flag.removeprefix('--')}"
        return (negative, None) if capabilities.has(negative) else None
    return knob.flag, flag_text(value)
