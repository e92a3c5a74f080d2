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
from serverctl.paths import free_disk_gib

#: Reports progress: what is being done, bytes so far and in all (None where not known).
Report = Callable[[str, int | None, int | None], None]
#: What pip says when a download broke off.
_BROKE_OFF = ("timed out", "Connection", "IncompleteRead", "ProtocolError", "broke", "reset by peer")
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
    """An environment that is whole."""

    folder: Path  # of the environment
    python: Path  # its interpreter
    versions: dict[str, Any]  # of vLLM, torch and CUDA
    already: bool  # whether it was whole before


def install(
    build: Build, report: Report = lambda *_: None, again: bool = False, folder: Path | None = None
) -> Installed:
    """Installs a build of vLLM in a folder, or its own place; finds it installed unless it is to be made `again`.

    Raises:
        EnvironmentLacksError: no space, no suitable Python, no network; nothing is broken by that.
        MaiError: what was installed does not work.
        StoppedError: Ctrl-C; what was downloaded is kept.
    """
    folder = folder or environment_folder(build)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _only_one(folder):
        mark = read_mark(folder)
        if mark is not None and not again:
            return Installed(folder, python_of(folder), dict(mark.get("versions", {})), True)
        if again and folder.exists():
            report("removing the old environment", None, None)
            shutil.rmtree(folder, ignore_errors=True)
        check_space(folder, build)
        _Installation(folder, build, report).run()
        report("checking that it works", None, None)
        versions = check(python_of(folder), build)
        document = {"ready": True, "build": build.name, "version": build.version, "versions": versions}
        (folder / MARK).write_text(json.dumps({**document, "made": time.time()}, indent=1), encoding="utf-8")
        return Installed(folder, python_of(folder), versions, False)


def check_space(folder: Path, build: Build) -> None:
    """Raises EnvironmentLacksError where the disk cannot hold a build (less what is there of it already)."""
    free = free_disk_gib(folder)
    there = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink()) / 1024**3
    if free + there < build.disk_gib:
        raise EnvironmentLacksError(
            f"vLLM takes about {build.disk_gib:.0f} GiB, and {free:.1f} GiB are free for {folder}.",
            "Make room, or set MAI_SERVER_ENVIRONMENTS to a folder on a larger disk.",
        )


def check(python: Path, build: Build) -> dict[str, Any]:
    """The versions in an environment whose vLLM works: its parser answers, and torch can use the cards.

    Raises MaiError with the last line of what went wrong where it does not work.
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
    """A Python that the build's wheels take: ours, or another on the path. Raises EnvironmentLacksError without one."""
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


class _Installation:
    """What is run to fill an environment; all output goes into the log beside it."""

    def __init__(self, folder: Path, build: Build, report: Report) -> None:
        self._folder = folder
        self._build = build
        self._report = report
        self._python = python_of(folder)
        self._log = folder.with_name(f"{folder.name}.log")

    def run(self) -> None:
        if not self._python.is_file():
            self._make()
        self._pip("--upgrade", "pip")
        try:
            self._pip(*self._pip_options(), *self._build.packages)
        except EnvironmentLacksError:
            # A CPU build needs a torch that plain pip may not find; uv knows where it is.
            if self._build.least_driver is not None or "torch" not in self._last_error():
                raise
            self._report("looking for a torch for processors", None, None)
            self._pip(*self._pip_options(), "uv")
            uv = [str(self._python.with_name("uv")), "pip", "install", "--python", str(self._python)]
            if self._run([*uv, "--torch-backend", "cpu", *self._build.packages]) != 0:
                raise

    def _make(self) -> None:
        self._report("making an environment", None, None)
        python = choose_python(self._build)
        if self._run([python, "-m", "venv", str(self._folder)]) != 0:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise EnvironmentLacksError(
                f"{python} cannot make a virtual environment.",
                f"Install its venv module (Debian: python3-venv). The log is {self._log}.",
            )

    def _pip(self, *arguments: str) -> None:
        """One pip installation; tried again once, as downloads break off."""
        command = [str(self._python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *arguments]
        status = self._run(command)
        if status != 0 and any(mark in self._tail() for mark in _BROKE_OFF):
            self._report("the download broke off; going on", None, None)
            status = self._run(command)
        if status != 0:
            packages = " ".join(self._build.packages) if self._build.packages[0] in arguments else arguments[-1]
            raise EnvironmentLacksError(
                f"pip could not install {packages}: {self._last_error()}",
                f"Run the same command again to go on; the whole output is in {self._log}.",
            )

    def _pip_options(self) -> list[str]:
        """What this pip can do: machine-readable progress from 24.1, broken downloads taken up from 25.1."""
        asked = [str(self._python), "-m", "pip", "--version"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        found = re.match(r"pip (\d+)\.(\d+)", done.stdout)
        version = (int(found[1]), int(found[2])) if found else (0, 0)
        options = ["--progress-bar", "raw" if version >= (24, 1) else "off"]
        return [*options, "--resume-retries", "10"] if version >= (25, 1) else options

    def _run(self, command: Sequence[str]) -> int:
        """Runs a program in a group of its own and turns pip's output into progress. Ctrl-C ends the group."""
        with self._log.open("a", encoding="utf-8") as file:
            file.write(f"\n$ {' '.join(command)}\n")
            file.flush()
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                errors="replace", start_new_session=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )  # fmt: skip
            assert process.stdout is not None
            progress = PipProgress(self._report)
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

    def _tail(self) -> str:
        try:
            return self._log.read_text(encoding="utf-8", errors="replace")[-8000:]
        except OSError:
            return ""

    def _last_error(self) -> str:
        lines = [line.strip() for line in self._tail().splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith(("ERROR", "error"))]
        return (errors or lines or ["it said nothing"])[-1][:300]


class PipProgress:
    """Turns pip's output into progress."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._what = "looking up packages"

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


def remove(build: Build) -> bool:
    """Removes a build's environment; gives whether there was one."""
    folder = environment_folder(build)
    if not folder.exists():
        return False
    with _only_one(folder):
        shutil.rmtree(folder, ignore_errors=True)
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
