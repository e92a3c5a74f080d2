"""Adds the gate to a server's API: middleware that requires the key on every path.

The gate is closed before the server stops, so that a stopping vLLM gets no new requests.
"""

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path

from foundation.errors import EnvironmentLacksError
from serverctl.plan.goal import Reason
from serverctl.plan.render import Command, Line
from serverctl.process import in_vllm, probe
from serverctl.process.in_vllm import mai_gate
from serverctl.process.in_vllm.mai_gate import FILE, INSIDE
from serverctl.process.state import Folder
from serverctl.vllm.capabilities import Capabilities

_FLAG = "--middleware"
_WHY = Reason(
    "every path needs the key; requests that come while the server ends are asked to come again", "docs/serving.md"
)
#: Interval between two checks of the running requests, seconds.
_LOOK_EVERY = 0.1


def inside(port: int, key: str) -> int | None:
    """Return the number of running client requests, including those whose images are prepared; None without a gate."""
    answer = probe.ask(port, INSIDE, key, seconds=2.0)
    try:
        found = json.loads(answer.body)["inside"] if answer.ok else None
    except (ValueError, TypeError, KeyError):
        return None
    return found if isinstance(found, int) else None


async def emptied(folder: Folder, port: int, key: str, seconds: float) -> None:
    """Close the gate, and wait at most `seconds` for the running requests."""
    folder.shut_gate()
    end = time.monotonic() + seconds
    while await asyncio.to_thread(inside, port, key) and time.monotonic() < end:
        await asyncio.sleep(_LOOK_EVERY)


def with_gate(command: Command, capabilities: Capabilities, place: str) -> Command:
    """Add the gate to a command. Its module is in the folder `place`.

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


def with_folders_gate(command: Command, folder: Folder, capabilities: Capabilities) -> Command:
    """Add the gate to the command of a local server. The gate file in its folder closes it."""
    gated = with_gate(command, capabilities, str(Path(in_vllm.__file__).parent))
    return replace(gated, env={**gated.env, FILE: str(folder.gate_file)})


def source() -> str:
    """Return the source code of the gate's module, for servers on other machines."""
    return Path(mai_gate.__file__).read_text(encoding="utf-8")
