"""Adds the gate to a server's API: middleware that requires the key on every path."""

from dataclasses import replace
from pathlib import Path

from foundation.errors import EnvironmentLacksError
from serverctl.plan.goal import Reason
from serverctl.plan.render import Command, Line
from serverctl.process import in_vllm
from serverctl.process.in_vllm import mai_gate
from serverctl.vllm.capabilities import Capabilities

_FLAG = "--middleware"
_OURS = str(Path(in_vllm.__file__).parent)
_WHY = Reason("every path needs the key", "docs/serving.md")


def with_gate(command: Command, capabilities: Capabilities, place: str = _OURS) -> Command:
    """Add the gate to a command. Its module is in the folder `place`, by default that of this machine.

    Raises:
        EnvironmentLacksError: this vLLM has no --middleware, so some paths would answer without the key.
    """
    if not capabilities.has(_FLAG):
        raise EnvironmentLacksError(
            f"vLLM {capabilities.version} has no {_FLAG}: some of its paths would answer without the key.",
            "`mai-server install` installs a newer one.",
        )
    lines = (*command.lines, Line(_FLAG, "mai_gate.Gate", _WHY))
    return replace(command, lines=lines, env={**command.env, "PYTHONPATH": place})


def source() -> str:
    """Return the source code of the gate's module, for servers on other machines."""
    return Path(mai_gate.__file__).read_text(encoding="utf-8")
