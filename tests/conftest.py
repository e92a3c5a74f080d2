"""What every test gets: an environment without the developer's own settings, keys and proxies; and who runs which."""

import os
import tempfile
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules with a real vLLM late, as it may still be being installed, and whole runs on desktops last.

    Each module goes whole to one of two workers. Runs on desktops are kept from the time in which an installation keeps
    the processors busy: a desktop that is late shows the agent a screen that is about to change.
    """
    with_vllm = {item.path for item in items if "vllm_python" in getattr(item, "fixturenames", ())}
    items.sort(key=lambda item: 2 if "e2e" in item.path.parts else 1 if item.path in with_vllm else 0)


@pytest.fixture(scope="session", autouse=True)
def own_temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A temporary folder of this worker's own: sandboxes are found, and those left over removed, by looking there.

    Its path is short, as sockets are made in it; what a failed test leaves for reading is elsewhere, in pytest's own.
    """
    tmp_path_factory.getbasetemp()  # chosen before the place for temporary folders is another
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="mai-test-") as folder:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", None)
        yield


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in ("MAI_AGENT_ENDPOINT", "MAI_AGENT_MODEL", "MAI_AGENT_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    settings_file = tmp_path_factory.getbasetemp() / "no-settings.toml"
    settings_file.touch()
    monkeypatch.setenv("MAI_AGENT_CONFIG", str(settings_file))


@pytest.fixture(scope="session")
def shared_sandbox(own_temporary_folder: None) -> "Iterator[SharedSandbox]":
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
