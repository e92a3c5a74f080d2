"""The gate of a server's API: shut before the server goes away, so that no new request meets a vLLM that is ending."""

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path

from serverctl.capabilities import Capabilities
from serverctl.plan.goal import Reason
from serverctl.plan.render import Command, Line
from serverctl.process import in_vllm, probe
from serverctl.process.in_vllm.mai_gate import FILE, INSIDE
from serverctl.process.state import Folder

_FLAG = "--middleware"
#: How often it is looked who is inside, seconds.
_LOOK_EVERY = 0.1


def inside(port: int) -> int | None:
    """How many requests of clients are inside, those whose images are still prepared included; None: it has no gate."""
    answer = probe.ask(port, INSIDE, seconds=2.0)
    try:
        found = json.loads(answer.body)["inside"] if answer.ok else None
    except (ValueError, TypeError, KeyError):
        return None
    return found if isinstance(found, int) else None


async def emptied(folder: Folder, port: int, seconds: float) -> None:
    """Lets nobody in any more, and waits for those who are inside, at most so many seconds."""
    folder.shut_gate()
    end = time.monotonic() + seconds
    while await asyncio.to_thread(inside, port) and time.monotonic() < end:
        await asyncio.sleep(_LOOK_EVERY)


def with_gate(command: Command, folder: Folder, capabilities: Capabilities) -> Command:
    """The command of a server that has a gate, where its vLLM takes one."""
    if not capabilities.has(_FLAG):
        return command
    why = Reason("requests that come while the server ends are asked to come again", "docs/serving.md")
    env = {**command.env, FILE: str(folder.gate_file), "PYTHONPATH": str(Path(in_vllm.__file__).parent)}
    return replace(command, lines=(*command.lines, Line(_FLAG, "mai_gate.Gate", why)), env=env)
