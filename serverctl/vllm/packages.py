"""Installs packages into a virtual environment with pip, or with uv if pip finds no CPU build of torch.

Turns their output into progress reports.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from foundation.configs import configs_dir
from foundation.errors import EnvironmentLacksError, StoppedError
from serverctl.vllm.builds import Build, python_of

#: Texts in pip's output after an interrupted download.
_BROKE_OFF = ("timed out", "Connection", "IncompleteRead", "ProtocolError", "broke", "reset by peer")
_SHIM = Path(__file__).with_name("torchvision_on_cpu.py")


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of an installation."""

    what: str  # the current step; constant during the step
    detail: str = ""  # the current item of the step
    done: int | None = None  # downloaded bytes
    whole: int | None = None  # size of the download in bytes; None if unknown

    def __str__(self) -> str:
        return f"{self.what}: {self.detail}" if self.detail else self.what


Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class EnvironmentInstaller:
    """Creates one environment and installs a build into it. Temporary files of pip and uv are in its folder `.work`."""

    _folder: Path  # of the environment; must not exist
    _build: Build
    _interpreter: str  # the Python to create the environment with
    _report: Report  # receives the progress; an exception from it stops the installation
    _log: Path  # file for all output

    @property
    def _work(self) -> Path:
        return self._folder / ".work"

    @property
    def _pip(self) -> list[str]:
        python = str(python_of(self._folder))
        return [python, "-I", "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]

    def run(self) -> None:
        """Create and fill the environment. Raises EnvironmentLacksError with pip's error, StoppedError on Ctrl-C."""
        self._report(Progress("making an environment"))
        if self._run([self._interpreter, "-I", "-m", "venv", str(self._folder)]) != 0:
            raise EnvironmentLacksError(
                f"{self._interpreter} cannot make a virtual environment.",
                f"Install its venv module (Debian: python3-venv). The log is {self._log}.",
            )
        self._work.mkdir()
        self._run([*self._pip, "--upgrade", "pip"])  # may fail: an older pip works, with less detailed progress
        if self._build.torch_finder is None:
            self._install("packages", *self._build.packages)
        elif self._build.lock is None or self._build.torch is None:
            self._install_for_processors(*self._build.packages)
        else:
            self._install_for_processors("--no-deps", self._build.torch)
            self._install("locked packages", "--no-deps", "--require-hashes", "-r", str(lock_of(self._build)))
        if self._build.least_driver is None:
            self._let_torchvision_load()
        shutil.rmtree(self._work, ignore_errors=True)

    def _install(self, label: str, *arguments: str) -> None:
        """Run one pip installation, with one retry after an interrupted download. Raises EnvironmentLacksError."""
        self._report(Progress(f"looking up {label}"))
        # Most modules are never imported; compiling all of them would take half of the time.
        command = [*self._pip, *self._pip_options(), "--no-compile", *arguments]
        status = self._run(command)
        if status != 0 and any(mark in self._tail() for mark in _BROKE_OFF):
            self._report(Progress("going on after a download broke off"))
            status = self._run(command)
        if status != 0:
            raise EnvironmentLacksError(
                f"pip could not install {self._build.packages[0]}: {self._last_error()}",
                f"The whole output is in {self._log}; whole downloads are in pip's own cache, for another try.",
            )

    def _install_for_processors(self, *arguments: str) -> None:
        """Install packages that need a CPU build of torch. Try uv if pip does not find that torch."""
        self._report(Progress("looking up torch"))
        if self._run([*self._pip, *self._pip_options(), "--no-compile", *arguments]) == 0:
            return
        reason = self._last_error()
        self._report(Progress("looking elsewhere for a torch for processors"))
        place = self._work / "uv"
        if self._run([*self._pip, "--no-deps", "--target", str(place), str(self._build.torch_finder)]) == 0:
            finder = [str(place / "bin" / "uv"), "pip", "install", "--python", self._pip[0]]
            if self._run([*finder, "--torch-backend", "cpu", *arguments]) == 0:
                return
            reason = self._last_error()
        raise EnvironmentLacksError(
            f"{arguments[-1]} could not be installed: {reason}",
            "Where this machine's packages come from another place, name it with PIP_EXTRA_INDEX_URL or "
            f"PIP_FIND_LINKS. The whole output is in {self._log}.",
        )

    def _let_torchvision_load(self) -> None:
        """Install `torchvision_on_cpu.py` if torchvision cannot be imported without it."""
        command = [self._pip[0], "-c", "import torchvision"]
        tried = subprocess.run(command, capture_output=True, text=True, check=False)
        if tried.returncode == 0 or "torchvision::" not in tried.stderr:
            return
        for packages in self._folder.glob("lib/python*/site-packages"):
            shutil.copy(_SHIM, packages)
            # Python runs the import lines of .pth files at every start, also in vLLM's child processes.
            line = f"import {_SHIM.stem}; {_SHIM.stem}.declare()\n"
            (packages / "torchvision-on-cpu.pth").write_text(line, encoding="utf-8")

    def _pip_options(self) -> list[str]:
        """Return options for this version of pip: raw progress from 24.1, resumed downloads from 25.1."""
        done = subprocess.run([*self._pip[:3], "--version"], capture_output=True, text=True, check=False)
        found = re.match(r"pip (\d+)\.(\d+)", done.stdout)
        version = (int(found[1]), int(found[2])) if found else (0, 0)
        options = ["--progress-bar", "raw" if version >= (24, 1) else "off"]
        return [*options, "--resume-retries", "10"] if version >= (25, 1) else options

    def _run(self, command: Sequence[str]) -> int:
        """Run a program in its own process group, and report its progress. Ctrl-C kills the group."""
        temporary = {"TMPDIR": str(self._work), "UV_CACHE_DIR": str(self._work / "uv-cache")}
        environ = {**os.environ, "PYTHONUNBUFFERED": "1", **(temporary if self._work.is_dir() else {})}
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"\n$ {' '.join(command)}\n")
            log.flush()
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                errors="replace", start_new_session=True, env=environ,
            )  # fmt: skip
            assert process.stdout is not None
            progress = PipProgress(self._report)
            try:
                for line in process.stdout:
                    if not progress.take(line):
                        log.write(line)
                        log.flush()
                return process.wait()
            except KeyboardInterrupt:
                raise StoppedError("Stopped: Ctrl-C.", "Nothing of it is left; the same command begins anew.") from None
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


def lock_of(build: Build) -> Path | None:
    """Return the file of a build's locked packages; None if pip resolves them."""
    return None if build.lock is None else configs_dir() / build.lock


class PipProgress:
    """Turns pip's output into progress reports."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._collected = 0
        self._fetching = Progress("fetching packages")

    def take(self, line: str) -> bool:
        """Handle one line. Return whether it only shows progress and need not be logged."""
        if found := re.match(r"Progress (\d+) of (\d+)", line):
            done, total = int(found[1]), int(found[2])
            self._report(Progress(self._fetching.what, self._fetching.detail, done, total or None))
            return True
        text = line.strip()
        if found := re.match(r"(?:Collecting|Processing) (\S+)", text):
            self._collected += 1
            self._fetching = Progress("fetching packages", f"{self._collected}, {_plain(found[1])}")
            self._report(self._fetching)
        elif found := re.match(r"Downloading (\S+) \(([^)]+)\)", text):
            self._fetching = Progress("fetching packages", f"{max(1, self._collected)}, {_plain(found[1])}")
            self._report(self._fetching)
        elif text.startswith("Installing collected packages:"):
            self._report(Progress("unpacking", f"{text.count(',') + 1} packages"))
        return False


def _plain(name: str) -> str:
    return re.split(r"[<>=!~;\[ -]\d|[<>=!~;\[ ]", name.rsplit("/", 1)[-1])[0]
