"""What the tests of the controller serve with a real vLLM: a model of noise, and another release's Python files."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Outside pytest's own folders: what is kept here between runs takes longer to make than a test may take.
CACHE = ROOT / ".cache-test"
MAKER = ROOT / "tests" / "stubs" / "tiny_qwen3_vl.py"


@pytest.fixture(scope="session")
def vllm_033(vllm_python: Path) -> Path:
    """The folder with the Python files of the vLLM 0.33.0 wheel: a PYTHONPATH for vllm_python."""
    folder = ROOT / ".cache-vllm" / "0.33.0"
    if not (folder / "requires.json").is_file():
        pytest.fail("The wheel of vLLM 0.33.0 is not there: run scripts/test --all once, which gets it.", pytrace=False)
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
