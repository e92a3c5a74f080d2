"""What every test gets: an environment without the developer's own settings, keys and proxies."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from stubs.shared_sandbox import SharedSandbox

    from agent.sandbox.desktop import Sandbox

# What CI tries is the same every time; on a person's machine every run tries something new.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("person", deadline=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "person")


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in ("MAI_AGENT_ENDPOINT", "MAI_AGENT_MODEL", "MAI_AGENT_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    settings_file = tmp_path_factory.getbasetemp() / "no-settings.toml"
    settings_file.touch()
    monkeypatch.setenv("MAI_AGENT_CONFIG", str(settings_file))


@pytest.fixture(scope="session")
def shared_sandbox() -> "Iterator[SharedSandbox]":
    """The one sandbox of this worker, for tests that do not end it or change its settings."""
    from stubs.shared_sandbox import SharedSandbox

    shared = SharedSandbox()
    yield shared
    shared.close()


@pytest.fixture
def sandbox(shared_sandbox: "SharedSandbox", monkeypatch: pytest.MonkeyPatch) -> "Sandbox":
    """A running, empty sandbox that this process sees as its display."""
    from stubs.display import forget_pyautogui

    for name in ("DISPLAY", "XAUTHORITY"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    running = shared_sandbox.lend()
    running.applied()
    forget_pyautogui()
    return running
