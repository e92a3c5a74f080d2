"""Makes an environment of its own for vLLM: never the agent's, resumable, and checked before it counts.

pip keeps what it downloaded, so an interrupted installation goes on where it was. Only when the vLLM in it has
answered is the environment marked as whole.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foundation.errors import EnvironmentLacksError, MaiError, StoppedError, UsageError
from serverctl.builds import Build
from serverctl.capabilities import ask_parser
from serverctl.environment import MARK, environment_folder, python_of, read_mark

#: Reports progress: what is being done, bytes so far and in all (None where not known).
Report = Callable[[str, int | None, int | None], None]
_GIB = 1024**3
#: The oldest Python that vLLM's wheels take.
_PYTHON_LEAST = (3, 10)

_TORCH_CHECK = """
import json, torch
found = {"torch": torch.__version__, "cuda": torch.version.cuda, "devices": []}
if torch.version.cuda:
    torch.cuda.init()
    found["devices"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment that is whole.

    Args:
        folder: of the environment.
        python: its interpreter.
        versions: of vLLM, torch and CUDA.
        already: whether it was whole before.
    """

    folder: Path
    python: Path
    versions: dict[str, Any]
    already: bool


def silent(what: str, done: int | None, whole: int | None) -> None:
    """Reports nothing."""
    del what, done, whole


def install(build: Build, report: Report = silent, again: bool = False, folder: Path | None = None) -> Installed:
    """Installs a build of vLLM, or finds it installed.

    Args:
        build: which one.
        report: is told what is being done.
        again: begin afresh, also where it is whole.
        folder: where to; the build's own place where None.

    Raises:
        EnvironmentLacksError: no space, no suitable Python, no network; nothing is broken by that.
        MaiError: what was installed does not work.
        StoppedError: Ctrl-C; what was downloaded is kept.
    """
    folder = folder or environment_folder(build)
    folder.parent.mkdir(parents=True, exist_ok=True)
    log = folder.with_name(f"{folder.name}.log")
    with _only_one(folder):
        mark = read_mark(folder)
        if mark is not None and not again:
            return Installed(folder, python_of(folder), dict(mark.get("versions", {})), True)
        if again and folder.exists():
            report("removing the old environment", None, None)
            _remove(folder)
        check_space(folder, build)
        _make_environment(folder, build, log, report)
        python = python_of(folder)
        _pip(python, ["--upgrade", "pip"], log, report)
        _install_packages(python, build, log, report)
        report("checking that it works", None, None)
        versions = check(python, build)
        document = {
            "ready": True,
            "build": build.name,
            "version": build.version,
            "versions": versions,
            "made": time.time(),
        }
        (folder / MARK).write_text(json.dumps(document, indent=1), encoding="utf-8")
        return Installed(folder, python, versions, False)


def check_space(folder: Path, build: Build) -> None:
    """Raises EnvironmentLacksError where the disk cannot hold a build (less what is there of it already)."""
    existing = folder
    while not existing.exists():
        existing = existing.parent
    free = shutil.disk_usage(existing).free / _GIB
    there = _size(folder) / _GIB
    if free + there < build.disk_gib:
        raise EnvironmentLacksError(
            f"vLLM takes about {build.disk_gib:.0f} GiB, and {free:.1f} GiB are free at {existing}.",
            "Make room, or set MAI_SERVER_ENVIRONMENTS to a folder on a larger disk.",
        )


def check(python: Path, build: Build) -> dict[str, Any]:
    """Looks whether the vLLM of an environment works: its parser answers, and torch can use the cards.

    Raises:
        MaiError: it does not; the message holds the last line of what went wrong.
    """
    dump = ask_parser(python)
    versions: dict[str, Any] = {"vllm": dump["vllm"], "transformers": dump.get("transformers")}
    done = subprocess.run([str(python), "-c", _TORCH_CHECK], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode == 0:
        versions.update(json.loads(done.stdout.strip().splitlines()[-1]))
        return versions
    if build.least_driver is None:
        return versions
    said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
    raise MaiError(
        f"vLLM {dump['vllm']} was installed, but torch cannot use the card: {said[:300]}.",
        f"Driver {build.least_driver} or newer is needed; `mai-server doctor` shows the one that is there.",
    )


def choose_python(build: Build) -> str:
    """A Python that the build's wheels take: ours, or another on the path.

    Raises:
        EnvironmentLacksError: there is none.
    """
    if _PYTHON_LEAST <= sys.version_info[:2] <= build.python_most:
        return sys.executable
    for minor in range(build.python_most[1], _PYTHON_LEAST[1] - 1, -1):
        found = shutil.which(f"python3.{minor}")
        if found:
            return found
    least, most = (".".join(map(str, version)) for version in (_PYTHON_LEAST, build.python_most))
    raise EnvironmentLacksError(
        f"vLLM {build.version} needs a Python from {least} to {most}, and this one is {sys.version.split()[0]}.",
        f"Install Python {most} beside it.",
    )


def _make_environment(folder: Path, build: Build, log: Path, report: Report) -> None:
    if python_of(folder).is_file():
        return
    report("making an environment", None, None)
    python = choose_python(build)
    status = _run([python, "-m", "venv", str(folder)], log, silent)
    if status != 0:
        _remove(folder)
        raise EnvironmentLacksError(
            f"{python} cannot make a virtual environment.",
            f"Install its venv module (Debian: python3-venv). The log is {log}.",
        )


def _install_packages(python: Path, build: Build, log: Path, report: Report) -> None:
    """The build's packages. A CPU build needs a torch that plain pip may not find; uv knows where it is."""
    try:
        _pip(python, list(build.packages), log, report)
    except EnvironmentLacksError:
        if build.least_driver is not None or "torch" not in _last_error(log):
            raise
        report("looking for a torch for processors", None, None)
        _pip(python, ["uv"], log, report)
        command = [str(python.with_name("uv")), "pip", "install", "--python", str(python), "--torch-backend", "cpu"]
        if _run([*command, *build.packages], log, report) != 0:
            raise


def _pip(python: Path, arguments: list[str], log: Path, report: Report) -> None:
    """One pip installation; tried again once, as downloads break off."""
    command = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *arguments]
    if arguments[:1] != ["--upgrade"]:
        command[4:4] = _pip_options(python)
    status = _run(command, log, report)
    if status != 0 and _broke_off(log):
        report("the download broke off; going on", None, None)
        status = _run(command, log, report)
    if status != 0:
        packages = " ".join(word for word in arguments if not word.startswith("-"))
        raise EnvironmentLacksError(
            f"pip could not install {packages}: {_last_error(log)}",
            f"Run the same command again to go on; the whole output is in {log}.",
        )


def _pip_options(python: Path) -> list[str]:
    """What this environment's pip can do: machine-readable progress from 24.1, broken downloads taken up from 25.1."""
    done = subprocess.run([str(python), "-m", "pip", "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"pip (\d+)\.(\d+)", done.stdout)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    options = ["--progress-bar", "raw"] if version >= (24, 1) else ["--progress-bar", "off"]
    return [*options, "--resume-retries", "10"] if version >= (25, 1) else options


def _run(command: Sequence[str], log: Path, report: Report) -> int:
    """Runs a program in a group of its own, logs its output, and turns pip's into progress. Ctrl-C ends the group."""
    with log.open("a", encoding="utf-8") as file:
        file.write(f"\n$ {' '.join(command)}\n")
        file.flush()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", start_new_session=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        assert process.stdout is not None
        progress = PipProgress(report)
        try:
            for line in process.stdout:
                if not progress.take(line):
                    file.write(line)
                    file.flush()
            return process.wait()
        except KeyboardInterrupt:
            raise StoppedError(
                "Stopped: Ctrl-C.", "What was downloaded is kept; run the same command again to go on."
            ) from None
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


class PipProgress:
    """Turns pip's output into progress.

    Args:
        report: is told.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._what = "looking up packages"
        self._base = 0
        self._last = 0

    def take(self, line: str) -> bool:
        """One line; gives whether it was only progress and needs no logging."""
        if found := re.match(r"Progress (\d+) of (\d+)", line):
            done, whole = int(found[1]), int(found[2])
            self._report(self._what, done, whole or None)
            return True
        text = line.strip()
        if found := re.match(r"Collecting (\S+)", text):
            self._what = f"looking up {_plain(found[1])}"
            self._report(self._what, None, None)
        elif found := re.match(r"Downloading (\S+) \(([^)]+)\)", text):
            self._what = f"downloading {_plain(found[1])}"
            self._report(self._what, None, None)
        elif text.startswith("Installing collected packages"):
            self._report("unpacking: this takes a while", None, None)
        return False


def _plain(name: str) -> str:
    """A package's name without its version and file name."""
    return re.split(r"[<>=!~;\[ -]\d|[<>=!~;\[ ]", name.rsplit("/", 1)[-1])[0]


def _broke_off(log: Path) -> bool:
    text = _tail(log)
    return any(
        mark in text
        for mark in ("timed out", "Connection", "IncompleteRead", "ProtocolError", "broke", "reset by peer")
    )


def _last_error(log: Path) -> str:
    lines = [line.strip() for line in _tail(log).splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("ERROR", "error"))]
    return (errors or lines or ["it said nothing"])[-1][:300]


def _tail(log: Path) -> str:
    try:
        return log.read_text(encoding="utf-8", errors="replace")[-8000:]
    except OSError:
        return ""


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink())


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def remove(build: Build) -> bool:
    """Removes a build's environment; gives whether there was one."""
    folder = environment_folder(build)
    if not folder.exists():
        return False
    with _only_one(folder):
        _remove(folder)
    return True


def with_version(build: Build, version: str) -> Build:
    """A build with another version of vLLM. Raises UsageError for text that is none."""
    if not re.fullmatch(r"\d+\.\d+(\.\d+)?([a-z0-9.+-]*)?", version):
        raise UsageError(f"{version!r} is no version.", "It looks like 0.33.0.")
    packages = tuple(re.sub(r"==.*", f"=={version}", package) for package in build.packages)
    return replace(build, version=version, packages=packages)


@contextlib.contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """One installation of an environment at a time."""
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise MaiError("Another `mai-server install` is at work on this environment.", "Wait for it.") from None
        yield
