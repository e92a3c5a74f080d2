"""The exported script, run for real with a stand-in for vLLM: it waits, watches, stops, and leaves nothing behind."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from serverctl.commands.plans.export import main

pytestmark = pytest.mark.slow

#: The version in the development lock, whatever else is installed.
SHELLCHECK = Path(sys.executable).parent / "shellcheck"
STUBS = Path(__file__).resolve().parents[2] / "stubs"

#: What vLLM does in a test, for `fake_vllm.py`.
GOOD: dict[str, Any] = {
    "says": "<grounding_think>The row [1, 2] is Dark mode.</grounding_think>\n"
    '<answer>\n{"coordinate": [822, 309]}\n</answer>',
    "before": {"LISTENING": [["print", "said on both: % $HOME 'quoted' \\ back\n"]]},
}
KINDS: dict[str, dict[str, Any]] = {
    "good": GOOD,
    "stubborn": {**GOOD, "ignore_term": True},
    "dies": {"serving": [["sleep", 2], ["die"]]},
    "mute": {"chat": "fail"},
    "broken": {"before": {"KV_CACHE": [["fail", "NO_KV"]]}},
}


def put_vllm(folder: Path, kind: str = "good") -> dict[str, str]:
    """Put a `vllm` of some kind into a folder's bin, and return the variables that it needs."""
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    (folder / "scenarios.json").write_text(json.dumps([KINDS[kind]]))
    program = folder / "bin" / "vllm"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -S {STUBS / "fake_vllm.py"} "$@"\n')
    program.chmod(0o755)
    return {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "FAKE_VLLM": str(folder / "scenarios.json")}


def last_start(folder: Path) -> dict[str, Any]:
    """What the last vLLM in a folder was started with."""
    found: dict[str, Any] = json.loads((folder / "scenarios.json.starts").read_text().splitlines()[-1])
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Launched:
    """The script as a process, with what it left on the disk."""

    def __init__(self, folder: Path, *arguments: str, kind: str = "good", options: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.port = free_port()
        self.script = folder / "serve.sh"
        if not self.script.exists():
            words = ("script", "--gpu", "T4", "--port", str(self.port), "--out", str(self.script), *options)
            assert main(list(words)) == 0
        self.record = folder / "scenarios.json.starts"
        self.logs = folder / "logs"
        environ = {name: value for name, value in os.environ.items() if not name.startswith("VLLM_")}
        environ |= {"HOME": str(folder), "LOG_FOLDER": str(self.logs), "STOP_SECONDS": "1", **put_vllm(folder, kind)}
        filled = [str(self.port) if word == "PORT" else word for word in arguments]
        self.process = subprocess.Popen(
            [self.script, *filled], env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        self.output = ""

    def read_until(self, words: str) -> str:
        """Reads its output up to a line with some words. The limit only catches what would never come."""
        assert self.process.stdout is not None
        end = time.monotonic() + 60
        while time.monotonic() < end:
            line = self.process.stdout.readline()
            self.output += line
            if words in line:
                return line
            assert line, f"it ended before it said {words!r}:\n{self.output}"
        raise AssertionError(self.output)

    def finish(self) -> int:
        assert self.process.stdout is not None
        self.output += self.process.stdout.read()
        return self.process.wait(60)

    @property
    def seen(self) -> dict[str, Any]:
        """What vLLM was started with."""
        return last_start(self.folder)

    def left_over(self) -> list[str]:
        """Processes of the server's session that still run."""
        session = self.seen["pid"]  # of its own
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(" ".join(process.cmdline()))
        return found

    def log(self) -> str:
        (file,) = self.logs.glob("*.log")
        return file.read_bytes().decode()  # a bar of vLLM is one line with carriage returns

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        if self.record.exists():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.seen["pid"], signal.SIGKILL)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


@pytest.fixture
def launched(tmp_path: Path) -> Iterator[list[Launched]]:
    running: list[Launched] = []
    yield running
    for one in running:
        one.end()


def launch(running: list[Launched], folder: Path, *arguments: str, **options: str) -> Launched:
    one = Launched(folder, *arguments, **options)  # type: ignore[arg-type]
    running.append(one)
    return one


def test_without_arguments_it_starts_the_plan_and_says_when_the_model_answers(
    launched: list[Launched], tmp_path: Path
) -> None:
    one = launch(launched, tmp_path)
    one.read_until("ready after")
    argv, env = one.seen["argv"], one.seen["environ"]
    assert argv[:2] == ["serve", "Tongyi-MAI/MAI-UI-2B"]
    assert argv[argv.index("--port") + 1] == str(one.port)
    assert argv[argv.index("--host") + 1] == "127.0.0.1"
    assert argv[argv.index("--limit-mm-per-prompt") + 1] == '{"image":4,"video":0}'
    assert argv.count("--port") == argv.count("--host") == argv.count("--served-model-name") == 1
    assert env["VLLM_NO_USAGE_STATS"] == "1"
    assert os.getsid(one.seen["pid"]) == one.seen["pid"], "the server is in a session of its own"
    (key_file,) = one.logs.glob("*.key")
    assert key_file.stat().st_mode & 0o777 == 0o600
    assert key_file.read_text().strip() == env["VLLM_API_KEY"]
    assert len(env["VLLM_API_KEY"]) == 48
    assert env["VLLM_API_KEY"] not in one.output
    assert env["VLLM_API_KEY"] not in " ".join(argv)
    lines = one.log().rstrip("\n").split("\n")
    assert len(lines) >= 9
    for line in lines:  # each has its time and its own text
        time.strptime(line[:19], "%Y-%m-%d %H:%M:%S")
    assert any(line.endswith(r" said on both: % $HOME 'quoted' \ back") for line in lines)


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
def test_a_signal_ends_it_and_everything_it_started_even_what_does_not_heed_signals(
    launched: list[Launched], tmp_path: Path, number: signal.Signals, status: int
) -> None:
    one = launch(launched, tmp_path, kind="stubborn")
    one.read_until("ready after")
    assert len(one.left_over()) == 3, "the server, its engine and its worker"
    os.killpg(one.process.pid, number)  # as a terminal does: to the script and everything in its foreground
    assert one.finish() == status
    assert one.left_over() == []
    assert not Path(f"/proc/{one.seen['pid']}").exists()


def test_a_signal_during_the_start_leaves_nothing_either(launched: list[Launched], tmp_path: Path) -> None:
    one = launch(launched, tmp_path, kind="stubborn")
    one.read_until("Model loading took")
    one.process.send_signal(signal.SIGINT)
    assert one.finish() == 130
    assert "ready after" not in one.output
    assert one.left_over() == []


@pytest.mark.parametrize(
    "kind, said, ready",
    [
        ("dies", "ended by itself (exit status 0)", True),
        ("broken", "ended by itself (exit status 1)", False),
        ("mute", "the model does not answer", False),
    ],
)
def test_a_server_that_does_not_serve_is_a_failure_and_its_engine_is_ended(
    launched: list[Launched], tmp_path: Path, kind: str, said: str, ready: bool
) -> None:
    one = launch(launched, tmp_path, kind=kind)
    assert one.finish() == 1
    assert said in one.output
    assert ("ready after" in one.output) is ready
    assert one.left_over() == []
    assert ("No available memory for the cache blocks" in one.log()) is (kind == "broken")


def test_a_port_in_use_is_refused_before_anything_starts(launched: list[Launched], tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        one = launch(launched, tmp_path, "org/model", port, "name")
        assert one.finish() == 1
    assert f"something already answers on port {port}" in one.output
    assert not one.record.exists()


NASTY = '{"image": 4, "note": "it\'s 100% $HOME `id` \\\\ \\"x\\""}'


@pytest.mark.parametrize(
    "given, flags",
    [
        (("--limit-mm-per-prompt", NASTY, "--seed", "0"), ["--limit-mm-per-prompt", NASTY, "--seed", "0"]),
        # One word with all flags, as older scripts have it.
        (('--seed 32  --limit-mm-per-prompt {"image":4}',), ["--seed", "32", "--limit-mm-per-prompt", '{"image":4}']),
    ],
)
def test_another_model_gets_its_own_flags_and_those_of_every_plan_only(
    launched: list[Launched], tmp_path: Path, given: tuple[str, ...], flags: list[str]
) -> None:
    one = launch(launched, tmp_path, "org/other", "PORT", "second", *given)
    one.read_until("ready after")
    argv = one.seen["argv"]
    assert argv[:2] == ["serve", "org/other"]
    assert argv[-4:] == flags
    assert argv[argv.index("--served-model-name") + 1] == "second"
    assert "--generation-config" in argv
    assert "--gpu-memory-utilization" not in argv, "the plan's numbers are for the plan's model"


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("org/model",), "usage:"),
        (("org/model", "http", "name"), "http is no port"),
        (("org/model", "70000", "name"), "70000 is no port"),
        (("org/model", "PORT", 'a"b'), "the name for clients may hold"),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(
    launched: list[Launched], tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    one = launch(launched, tmp_path, *arguments)
    assert one.finish() in (1, 2)
    assert said in one.output
    assert not one.record.exists()


def test_a_machine_without_vllm_is_told_so(launched: list[Launched], tmp_path: Path) -> None:
    one = launch(launched, tmp_path)
    one.end()
    bare = tmp_path / "bare"
    bare.mkdir()
    for tool in ("bash", "env", "curl", "setsid", "mkdir", "od", "tr", "chmod", "sleep"):
        (bare / tool).symlink_to(shutil.which(tool) or tool)
    done = subprocess.run(
        ["bash", one.script], env={"PATH": str(bare), "HOME": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "vllm is not in PATH" in done.stderr


def test_the_key_of_the_environment_is_used_and_a_models_folder_is_named_by_a_variable(tmp_path: Path) -> None:
    folder = tmp_path / "MAI-UI-2B"
    folder.mkdir()
    shape = Path(__file__).resolve().parents[3] / "configs" / "models" / "shapes" / "qwen3-vl-2b.json"
    (folder / "config.json").write_text(shape.read_text())
    out = tmp_path / "serve.sh"
    assert main(["script", "--gpu", "T4", "--model", str(folder), "--out", str(out)]) == 0
    text = out.read_text()
    assert str(tmp_path) not in text
    assert "${MODEL_FOLDER:?" in text
    done = subprocess.run(
        ["bash", out], env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "MODEL_FOLDER" in done.stderr


@pytest.mark.parametrize(
    "options",
    [("--gpu", "T4"), ("--gpu", "cpu"), ("--gpu", "H100", "--gpus", "2", "--preset", "throughput")],
)
def test_bash_and_shellcheck_accept_the_script(tmp_path: Path, options: tuple[str, ...]) -> None:
    assert main(["script", *options, "--out", f"{tmp_path}/out/"]) == 0
    scripts = sorted((tmp_path / "out").iterdir())
    assert len(scripts) == (2 if "--gpus" in options else 1)
    for script in scripts:
        assert subprocess.run(["bash", "-n", script]).returncode == 0
        assert os.access(script, os.X_OK)
        assert subprocess.run([SHELLCHECK, "--norc", script]).returncode == 0


def test_each_replica_has_a_script_with_its_own_port_and_card(tmp_path: Path) -> None:
    assert main(["script", "--gpu", "H100", "--gpus", "2", "--preset", "throughput", "--out", f"{tmp_path}/out/"]) == 0
    first, second = ((tmp_path / "out" / name).read_text() for name in ("mai-vllm.sh", "mai-vllm-2.sh"))
    assert "plan_port=8000\n" in first
    assert "plan_port=8001\n" in second
    assert 'CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-0}"' in first
    assert 'CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-1}"' in second
