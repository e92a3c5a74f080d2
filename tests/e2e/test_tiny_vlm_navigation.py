"""A real model does a whole run by itself: mai-server starts a real vLLM, and the desktop's own state is judged."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "tests/models/tiny-navigator"
#: A size that the model was not trained on, and its budget of pixels and screenshots.
OPTIONS = (
    *("--sandbox", "--keep", "--sandbox-size", "900x600", "--engine", "vllm", "--model", str(MODEL)),
    *("--family", "mai-ui", "--max-pixels", "160000", "--history-images", "1", "--zoom", "off", "--max-steps", "8"),
)
pytestmark = [pytest.mark.slow, pytest.mark.e2e, pytest.mark.real_vllm, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, vllm_python: Path, vllm_environ: dict[str, str]
) -> Iterator[dict[str, str]]:
    """Where the server's state is; the first run starts the server, and it stays for the others."""
    folder = tmp_path_factory.mktemp("served")
    environ = {**vllm_environ, "MAI_SERVER_STATE": str(folder), "MAI_SERVER_VLLM_PYTHON": str(vllm_python)}
    yield environ
    down = [sys.executable, "-m", "serverctl", "down", "--all"]
    subprocess.run(down, env=os.environ | environ | {"PYTHONPATH": str(ROOT)}, check=True, timeout=60)


def theme(run):
    return run.inside("xfconf-query", "-c", "xsettings", "-p", "/Net/ThemeName").stdout.strip()


def test_dark_mode_is_enabled_by_a_real_model_on_a_server_that_the_run_starts(command, kept, served):
    run = command(*OPTIONS, "open settings and enable dark mode", environ=served, timeout=400)
    kept(run)
    assert run.status == 0, run.out + run.err
    assert theme(run) == "Adwaita-dark"
    assert run.meta["verified"] is True
    done = [action["target"]["type"] for step in run.steps for action in step["actions"]]
    # On a busy machine, a click may come before the page, and is made again.
    assert done[0] == "open" and done[-1] == "finish" and set(done[1:-1]) == {"click"}, done


def test_a_setting_that_is_not_there_is_said_to_be_absent(command, kept, served):
    run = command(*OPTIONS, "open settings and enable subtitles", environ=served, timeout=400)
    kept(run)
    assert run.status == 1, run.out + run.err
    assert theme(run) == "Adwaita"
