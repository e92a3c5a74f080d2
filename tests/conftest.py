"""What every test gets: an environment without the developer's own settings, keys and proxies; and who runs which."""

import os
import signal
import tempfile
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from stubs.real_vllm import RealVllm
    from stubs.shared_sandbox import SharedSandbox

    from agent.sandbox.desktop import Sandbox

ROOT = Path(__file__).resolve().parents[1]
#: Outside pytest's own folders: what is kept here between runs takes longer to make than a test may take.
CACHE = ROOT / ".cache-test"
#: scripts/test --all names a file here that is there while it installs the vLLM, beside the tests that need none.
INSTALLING = os.environ.get("MAI_TEST_VLLM_IS_INSTALLED_WHEN_GONE")
#: What tells a program its desktop; starting a sandbox changes it in this process. As it was at the start.
DESKTOP = {name: os.environ.get(name) for name in ("DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "SWAYSOCK")}

# Under `nohup` or in the background these are ignored, and so they would be in every program that a test starts.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

# What CI tries is the same every time; on a person's machine every run tries something new.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("person", deadline=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "person")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A test with the real vLLM waits for it to be installed; its own time begins after that."""
    if INSTALLING is not None and "vllm_python" in getattr(item, "fixturenames", ()):
        while Path(INSTALLING).exists():
            time.sleep(0.5)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """No module sees the sandbox of an earlier one."""
    result = yield
    if nextitem is None or nextitem.path != item.path:
        for name, value in DESKTOP.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that need the real vLLM as slow. Run their modules late, and whole runs on desktops last.

    The real vLLM may still be being installed when the tests begin, which keeps the processors busy. A desktop that is
    late then shows the agent a screen that is about to change.
    """
    with_vllm = {item.path for item in items if "vllm_python" in getattr(item, "fixturenames", ())}
    for item in items:
        if "vllm_python" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")
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
    monkeypatch.setenv("MAI_AGENT_CALIBRATE", "off")  # a script of answers has none for it
    monkeypatch.setenv("MAI_AGENT_CONFIG", str(settings_file))
    # Nobody is asked whether to fetch a prompt from the network.
    monkeypatch.setattr("agent.prompts.store.network_at_hand", lambda _: False)


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


@pytest.fixture(scope="module")
def own_sandbox(own_temporary_folder: None) -> "Iterator[Sandbox]":
    """A sandbox of one module, whose tests change its settings and files."""
    from agent.core.geometry import Size
    from agent.sandbox.desktop import SandboxSpec, start_sandbox

    before = dict(os.environ)
    sandbox = start_sandbox(SandboxSpec(Size(1024, 768)))
    time.sleep(1)  # for what its panel writes by itself
    yield sandbox
    sandbox.close()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session")
def vllm_python() -> Path:
    """The Python of an environment with a vLLM that runs on the CPU. Its `vllm` command is broken: run it with -m."""
    python = ROOT / ".venv-vllm" / "bin" / "python"
    if not (python.parent.parent / "mai-server.json").is_file():
        pytest.fail("There is no vLLM to test with: run scripts/test --all, which installs it.", pytrace=False)
    return python


@pytest.fixture(scope="session")
def vllm_environ() -> dict[str, str]:
    """Variables with which the real vLLM starts in half the time, offline, and leaves the person's caches alone.

    The CPU build runs its model in a process of its own unless VLLM_ENABLE_V1_MULTIPROCESSING is 0; each process spends
    eight seconds on imports. The first start also looks the model's class up in one more process and remembers it
    under VLLM_CACHE_ROOT.
    """
    return {
        "HF_HUB_OFFLINE": "1",
        "VLLM_CACHE_ROOT": str(CACHE / "vllm"),
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_NO_USAGE_STATS": "1",
    }


@pytest.fixture(scope="session")
def tiny_vlm(
    vllm_python: Path, vllm_environ: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[RealVllm]":
    """A real vLLM that serves tests/models/tiny-qwen3-vl: a model that finds coloured shapes, as MAI-UI answers."""
    from stubs.real_vllm import RealVllm

    log = tmp_path_factory.mktemp("tiny-vlm") / "log"
    with RealVllm(vllm_python, ROOT / "tests/models/tiny-qwen3-vl", "MAI-UI-tiny", vllm_environ, log) as running:
        yield running
