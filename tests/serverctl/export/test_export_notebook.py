"""The exported notebook: its shape, its flags, and its code run in order against stand-ins for vLLM and nvidia-smi."""

import ast
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from test_export_script import free_port, last_start, put_vllm

from serverctl.commands.plans.export import main
from serverctl.vllm.capabilities import snapshot

pytestmark = pytest.mark.slow

CARDS = ["T4", "L4", "A100-40", "A100-80", "H100", "B200"]

#: Runs the cells of a notebook in one namespace, as a kernel does; the last argument names cells that must fail.
RUNNER = r"""
import json, sys
namespace = {"__name__": "__main__"}
pictures = []
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        print("###", cell["id"], flush=True)
        exec(compile("".join(cell["source"]), cell["id"], "exec"), namespace)
        namespace["display"] = pictures.append
        if cell["id"] == "draw":
            assert namespace["screenshot"].size == (1280, 800)
            box = namespace["switch"]
            pixel = namespace["screenshot"].getpixel(((box[0] + box[2]) // 2 + 10, (box[1] + box[3]) // 2))
            assert pixel == (190, 190, 190), "the switch is where it is said to be, and off"
        if cell["id"] == "point":
            x, y = namespace["POINT"]
            assert abs(x - 1052) < 1 and abs(y - 247) < 1, (x, y)
            assert pictures[-1].getpixel((round(x) + 30, round(y))) == (220, 30, 30), "the cross is on the picture"
"""


def notebook(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert main(["notebook", *options]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def code(document: dict[str, Any]) -> dict[str, str]:
    return {cell["id"]: "".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"}


def plans(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The PLANS of the notebook, read without running it."""
    for node in ast.parse(code(document)["settings"]).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "PLANS":
            found: dict[str, dict[str, Any]] = ast.literal_eval(node.value)
            return found
    raise AssertionError("there are no plans")


@pytest.mark.parametrize("card", CARDS)
def test_it_is_a_notebook_of_format_4_5(capsys: pytest.CaptureFixture[str], card: str) -> None:
    document = notebook(capsys, "--gpu", card)
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    assert set(document) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert document["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in document["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in document["cells"]:
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", cell["id"])
        wanted = {"cell_type", "id", "metadata", "source"}
        if cell["cell_type"] == "code":
            assert cell["execution_count"] is None
            assert cell["outputs"] == []
            wanted |= {"execution_count", "outputs"}
        else:
            assert cell["cell_type"] == "markdown"
        assert set(cell) == wanted
        assert all(isinstance(line, str) and line.endswith("\n") for line in cell["source"][:-1])
        assert "@" not in re.sub(r"[\w.]+@[\w.]+", "", "".join(cell["source"]).replace("@property", "")), cell["id"]
    if importlib.util.find_spec("nbformat"):
        import nbformat  # type: ignore[import-not-found, unused-ignore]

        nbformat.validate(document)


@pytest.mark.parametrize("card", CARDS)
def test_every_code_cell_compiles_and_is_explained_before(capsys: pytest.CaptureFixture[str], card: str) -> None:
    document = notebook(capsys, "--gpu", card)
    for before, cell in zip(document["cells"], document["cells"][1:], strict=False):
        if cell["cell_type"] == "code":
            assert before["cell_type"] == "markdown"
            ast.parse("".join(line for line in cell["source"] if not line.startswith(("%", "!"))))
    assert list(code(document))[-1] == "stop", "the last cell stops the server"


@pytest.mark.parametrize("card", CARDS)
def test_each_build_has_flags_of_its_own_parser_only(capsys: pytest.CaptureFixture[str], card: str) -> None:
    found = plans(notebook(capsys, "--gpu", card))
    assert found["cuda13"]["package"] == "vllm==0.33.0"
    assert found["cuda12"]["package"] == "vllm==0.19.1"
    assert found["cuda13"]["least_driver"] == 580
    for plan in found.values():
        capabilities = snapshot(plan["package"].split("==")[1])
        flags = [flag if isinstance(flag, str) else flag[0] for flag in plan["flags"]]
        assert len(flags) > 8
        assert not [flag for flag in flags if not capabilities.has(flag)]
        assert not [name for name in plan["env"] if not capabilities.reads(name)]
        assert plan["command"][0] == "serve"
    # What the older one has no variable for is left out of its plan only.
    assert "VLLM_ENABLE_STARTUP_PLAN" in found["cuda13"]["env"]
    assert "VLLM_ENABLE_STARTUP_PLAN" not in found["cuda12"]["env"]


def test_the_card_of_colab_is_named_where_it_has_one(capsys: pytest.CaptureFixture[str]) -> None:
    types = {card: notebook(capsys, "--gpu", card)["metadata"]["colab"].get("gpuType") for card in CARDS}
    assert types == {"T4": "T4", "L4": "L4", "A100-40": "A100", "A100-80": "A100", "H100": "H100", "B200": None}


class Machine:
    """A machine for a notebook: a stubbed nvidia-smi and a stand-in for vLLM in PATH."""

    def __init__(self, folder: Path, document: dict[str, Any]) -> None:
        self.folder = folder
        self.file = folder / "notebook.ipynb"
        # What the stand-in starts heeds no SIGTERM, as vLLM's workers at times: wait less than a person would.
        self.file.write_text(json.dumps(document).replace("(signal.SIGTERM, 15)", "(signal.SIGTERM, 1)"))
        self.runner = folder / "run.py"
        self.runner.write_text(RUNNER)
        put_vllm(folder)
        self.card("Tesla T4", 14950, "580.95.05", "13.0")

    def card(self, name: str, memory: int, driver: str, cuda: str) -> None:
        program = self.folder / "bin" / "nvidia-smi"
        program.write_text(
            f'#!/bin/sh\nif [ $# -eq 0 ]; then echo "| Driver Version: {driver}   CUDA Version: {cuda} |"\n'
            f'else echo "{name}, {memory}, {driver}"; fi\n'
        )
        program.chmod(0o755)

    def run(self, kind: str = "good", smi: bool = True) -> tuple[int, str]:
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("VLLM_", "OPENAI"))}
        environ |= {**put_vllm(self.folder, kind), "MAI_VLLM": str(self.folder / "bin" / "vllm")}
        if not smi:
            (self.folder / "bin" / "nvidia-smi").unlink()
            environ["PATH"] = str(self.folder / "bin")
        done = subprocess.run(
            [sys.executable, self.runner, self.file],
            env=environ,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=100,
        )
        return done.returncode, done.stdout + done.stderr

    def server_is_gone(self) -> bool:
        try:
            os.killpg(last_start(self.folder)["pid"], 0)
        except ProcessLookupError:
            return True
        return False


@pytest.fixture
def machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Machine]:
    machine = Machine(tmp_path, notebook(capsys, "--gpu", "T4", "--port", str(free_port())))
    yield machine
    with suppress(OSError):  # a test that fails leaves it running
        os.killpg(last_start(tmp_path)["pid"], signal.SIGKILL)


def test_run_from_top_to_bottom_it_starts_asks_shows_and_stops(machine: Machine) -> None:
    status, output = machine.run()
    assert status == 0, output
    started = last_start(machine.folder)
    argv = started["argv"]
    assert argv[:2] == ["serve", "Tongyi-MAI/MAI-UI-2B"]
    assert argv[argv.index("--limit-mm-per-prompt") + 1] == '{"image":4,"video":0}'
    assert argv[argv.index("--dtype") + 1] == "half"
    key = started["environ"]["VLLM_API_KEY"]
    assert len(key) == 48
    assert key not in " ".join(argv)
    assert key not in output
    for words in (
        "Tesla T4, 14.6 GiB",
        "Driver 580.95.05: vllm==0.33.0",
        "loading the model, 50 %",
        "setting up the KV cache",
        "  ready",
        '{"coordinate": [822, 309]}',
        "on the switch.",
        "KV cache: 262,144 tokens",
        "in use now: 0.0%",
        "Prefix cache hit rate: 31% of 1,676 prompt tokens",
        "Stopped.",
    ):
        assert words in output, output
    stages = re.findall(r"^ +\d+ s  (\w+)", output, re.MULTILINE)
    assert stages.index("reading") < stages.index("loading") < stages.index("ready"), "the stages are shown in order"
    assert machine.server_is_gone()


def test_an_older_driver_gets_the_older_vllm_with_its_own_flags(machine: Machine) -> None:
    machine.card("Tesla T4", 14950, "570.124.06", "12.8")
    status, output = machine.run()
    assert status == 0, output
    assert "Driver 570.124.06: vllm==0.19.1" in output
    assert "VLLM_ENABLE_STARTUP_PLAN" not in last_start(machine.folder)["environ"]


def test_a_server_that_heeds_no_signal_is_killed_with_what_it_started(machine: Machine) -> None:
    status, output = machine.run("stubborn")
    assert status == 0, output
    assert machine.server_is_gone()


@pytest.mark.parametrize(
    "kind, said",
    [("broken", "No available memory for the cache blocks"), ("mute", "The model does not answer: 500")],
)
def test_a_start_that_fails_stops_there_and_shows_why(machine: Machine, kind: str, said: str) -> None:
    status, output = machine.run(kind)
    assert status == 1
    assert said in output
    assert "### draw" not in output
    assert machine.server_is_gone()


@pytest.mark.parametrize(
    ("card", "status", "said"),
    [
        (("NVIDIA GeForce GTX 1650", 4096, "580.95.05", "13.0"), 1, "mai-server export notebook --gpu NAME"),
        (("Tesla T4", 14950, "470.57.02", "11.4"), 1, "470.57.02 is too old"),
        (("NVIDIA L4", 22_700, "580.95.05", "13.0"), 0, "Made for Tesla T4"),  # a larger card may be used
    ],
)
def test_another_card_or_driver_is_refused_before_anything_is_installed_or_named(
    machine: Machine, card: tuple[str, int, str, str], status: int, said: str
) -> None:
    machine.card(*card)
    found, output = machine.run()
    assert (found, "### install" in output) == (status, status == 0), output
    assert said in output


def test_a_machine_without_a_card_is_told_where_colab_has_one(machine: Machine) -> None:
    status, output = machine.run(smi=False)
    assert status == 1
    assert "Runtime > Change runtime type" in output


def test_the_installation_is_quoted_shown_and_not_repeated(machine: Machine) -> None:
    """The cell with a stand-in for uv: the requirement is one word, and a whole environment is used again."""
    uv = machine.folder / "uv" / "uv"
    uv.mkdir(parents=True)
    (uv / "__init__.py").touch()
    (uv / "__main__.py").write_text(
        "import json, os, pathlib, sys\n"
        "print('uv', json.dumps(sys.argv[1:]))\n"
        "if sys.argv[1] == 'pip':\n"
        "    bin = pathlib.Path(sys.argv[sys.argv.index('--python') + 1]).parent\n"
        "    bin.mkdir(parents=True)\n"
        "    os.link(os.environ['STAND_IN_PROGRAM'], bin / 'vllm')\n"
    )
    (uv.parent / "pip").mkdir()
    (uv.parent / "pip" / "__init__.py").touch()
    (uv.parent / "pip" / "__main__.py").write_text("import sys\nprint('pip', sys.argv[1:])\n")
    runner = "import os; os.environ.pop('MAI_VLLM')\n" + RUNNER + "assert namespace['install']() == namespace['VLLM']\n"
    machine.runner.write_text(runner)
    os.environ["PYTHONPATH"] = str(uv.parent)
    os.environ["STAND_IN_PROGRAM"] = str(machine.folder / "bin" / "vllm")
    try:
        status, output = machine.run()
    finally:
        del os.environ["PYTHONPATH"], os.environ["STAND_IN_PROGRAM"]
    assert status == 0, output
    assert '"vllm==0.33.0"]' in output
    assert re.search(r"^ +0 s  uv \[\"venv\"", output, re.MULTILINE)
    assert output.count('uv ["pip"') == 1
    assert last_start(machine.folder)["environ"]["PATH"].startswith(str(machine.folder / "vllm-0.33.0" / "bin"))


def test_a_model_with_another_grid_is_answered_but_not_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    assert "DIVISOR = 1000 " in code(notebook(capsys, "--gpu", "T4"))["point"]
    assert "DIVISOR = 1000 " in code(notebook(capsys, "--gpu", "L4", "--model", "Qwen3-VL-4B-Instruct"))["point"]
    assert "DIVISOR = None " in code(notebook(capsys, "--gpu", "H100", "--model", "Qwen2.5-VL-7B-Instruct"))["point"]


def test_the_point_is_the_last_pair_after_the_thinking(capsys: pytest.CaptureFixture[str]) -> None:
    cell = code(notebook(capsys, "--gpu", "T4"))["point"]
    namespace: dict[str, Any] = {"re": re}
    exec(cell[cell.index("def find_point") : cell.index("found = ")], namespace)
    find = namespace["find_point"]
    assert find('<grounding_think>at [1, 2]</grounding_think>\n<answer>\n{"coordinate": [0, 309]}\n</answer>') == (
        0,
        309,
    )
    assert find('{"coordinate":[12.5,-3]}') == (12.5, -3)
    assert find("<grounding_think>at [1, 2]</grounding_think> nowhere") is None
    assert find("") is None


def test_the_stages_are_found_in_the_log_of_a_real_start(capsys: pytest.CaptureFixture[str]) -> None:
    cell = code(notebook(capsys, "--gpu", "T4"))["start"]
    namespace: dict[str, Any] = {}
    exec(cell[cell.index("STAGES = [") : cell.index("#: Nothing")], namespace)
    log = Path(__file__).parents[1] / "data" / "logs" / "cpu-good-start.log"
    seen = []
    for line in log.read_text().splitlines():
        for pattern, words in namespace["STAGES"]:
            if re.search(pattern, line) and words not in seen:
                seen.append(words)
    assert seen[0] == "reading the configuration"
    assert {"preparing the engine", "loading the model", "setting up the KV cache", "engine ready", "serving"} <= set(
        seen
    )
    assert seen[-1] == "serving"
