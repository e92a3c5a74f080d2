"""What the tests of the controller serve with a real vLLM: a tiny model; and another release's Python files."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def vllm_033(vllm_python: Path) -> Path:
    """The folder with the Python files of the vLLM 0.33.0 wheel: a PYTHONPATH for vllm_python."""
    folder = ROOT / ".cache-vllm" / "0.33.0"
    if not folder.is_dir():
        pytest.fail("The wheel of vLLM 0.33.0 is not there: run scripts/test --all once, which gets it.", pytrace=False)
    return folder


@pytest.fixture(scope="session")
def tiny_model() -> Path:
    """The folder of a tiny Qwen3-VL that a real vLLM serves."""
    return ROOT / "tests" / "models" / "tiny-qwen3-vl"
