"""A real vLLM for the tests that want one: its Python, a tiny model to serve, and what makes it start quickly.

scripts/test installs all this; a machine without it fails these tests rather than passing without having run them.
"""

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Generator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Outside pytest's own folders: what is kept here between runs takes longer to make than a test may take.
CACHE = ROOT / ".cache-test"
MAKER = ROOT / "tests" / "stubs" / "tiny_qwen3_vl.py"


#: scripts/test names a file here that is there while it installs the vLLM, beside the tests that need none.
INSTALLING = os.environ.get("MAI_TEST_VLLM_IS_INSTALLED_WHEN_GONE")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A test with the real vLLM waits for it to be installed; its own time begins after that."""
    if INSTALLING is not None and "vllm_python" in getattr(item, "fixturenames", ()):
        while Path(INSTALLING).exists():
            time.sleep(0.5)
    return (yield)


@pytest.fixture(scope="session")
def vllm_python() -> Path:
    """The Python of an environment with a vLLM that runs on the CPU. Its `vllm` command is broken: run it with -m."""
    python = ROOT / ".venv-vllm" / "bin" / "python"
    if not (python.parent.parent / ".installed").is_file():
        pytest.fail("There is no vLLM to test with: run scripts/test, which installs it.", pytrace=False)
    return python


@pytest.fixture(scope="session")
def vllm_033(vllm_python: Path) -> Path:
    """The folder with the Python files of the vLLM 0.33.0 wheel: a PYTHONPATH for vllm_python."""
    folder = ROOT / ".cache-vllm" / "0.33.0"
    if not (folder / "requires.json").is_file():
        pytest.fail("The wheel of vLLM 0.33.0 is not there: run scripts/test once, which gets it.", pytrace=False)
    return folder


@pytest.fixture(scope="session")
def tiny_model(vllm_python: Path) -> Path:
    """The folder of a tiny Qwen3-VL that a real vLLM serves; made anew when its maker changes."""
    key = hashlib.sha256(MAKER.read_bytes()).hexdigest()[:16]
    folder = CACHE / f"tiny-qwen3-vl-{key}"
    if not folder.is_dir():
        # Under another name until it is whole, as two test runs may make it at the same time.
        part = CACHE / f"{folder.name}.{os.getpid()}"
        subprocess.run([vllm_python, MAKER, part], check=True, capture_output=True, timeout=100)
        try:
            part.rename(folder)
        except OSError:
            shutil.rmtree(part)
    return folder


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
