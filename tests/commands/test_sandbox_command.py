"""`mai-agent sandbox stop`: which sandboxes end, and what it says."""

import pytest

from agent.sandbox.desktop import SandboxSpec, find_sandboxes, start_sandbox


def _keep() -> str:
    sandbox = start_sandbox(SandboxSpec(session="bare", keep=True))
    sandbox.close()
    return sandbox.name


def test_stop_ends_what_is_kept_and_says_so_also_where_there_is_nothing(mai, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "XAUTHORITY"):
        monkeypatch.setenv(name, "")  # the start of a sandbox changes them
    assert mai("sandbox", "stop").out == "There are no unused sandboxes.\n"
    first, second = _keep(), _keep()
    assert mai("sandbox", "stop", first).out == f"stopped {first}\n"
    assert mai("sandbox", "stop").out == f"stopped {second}\n"
    assert not {first, second} & {found.name for found in find_sandboxes()}
