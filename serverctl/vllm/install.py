"""Installs vLLM in its own environment, separate from the agent's.

The environment is marked as complete only after its vLLM worked. An incomplete one is removed at once or, after a
power cut, by the next installation.
"""

import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foundation.errors import EnvironmentLacksError, MaiError, StoppedError, UsageError
from foundation.processes import signals_raise
from serverctl.paths import free_disk_gib, state_root
from serverctl.vllm.builds import MARK, Build, environment_folder, python_of, read_mark
from serverctl.vllm.capabilities import ask_parser
from serverctl.vllm.packages import EnvironmentInstaller, Progress, Report, lock_of

#: The first vLLM that serves MAI-UI (its README).
_LEAST_FOR_MAI_UI = (0, 11)
#: The oldest Python that vLLM's wheels support.
_PYTHON_LEAST = (3, 10)
#: Timeout for the first import of vLLM with its kernels, on a slow disk, seconds.
_CHECK_SECONDS = 600

_OTHER_BUILDS = "`mai-server install --list` names other builds; --vllm-python FILE names a vLLM of your own."
_TORCH_CHECK = """
import json, torch
found = {"torch": torch.__version__, "cuda": torch.version.cuda, "devices": []}
if torch.version.cuda:
    torch.cuda.init()
    found["devices"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
print(json.dumps(found))
"""
#: A CPU build of vLLM only warns if its compiled part does not load, and fails much later.
_PROCESSOR_CHECK = """
import json, torch, vllm.entrypoints.openai.api_server
from vllm.platforms import current_platform
current_platform.import_kernels()
torch.ops._C.rms_norm
print(json.dumps({"torch": torch.__version__, "cuda": None, "devices": []}))
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """A finished environment."""

    folder: Path  # of the environment
    python: Path  # its interpreter
    versions: dict[str, Any]  # of vLLM, torch and CUDA
    already: bool  # whether it was complete before


def install(
    build: Build, report: Report = lambda _: None, again: bool = False, folder: Path | None = None
) -> Installed:
    """Install a build of vLLM in a folder, by default the build's own. Keep a complete environment unless `again`.

    Raises:
        EnvironmentLacksError: no space, no suitable Python, no network, or vLLM does not work; nothing is left behind.
        StoppedError: Ctrl-C or a signal; only downloads in pip's cache are left behind.
        MaiError: another installation is running.
    """
    folder = folder or environment_folder(build)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _only_one(folder.parent), signals_raise(_stopped):
        mark, lock = read_mark(folder), lock_of(build)
        locked = lock and hashlib.sha256(lock.read_bytes() + (build.torch or "").encode()).hexdigest()
        if mark is not None and not again and mark.get("lock") == locked:
            return Installed(folder, python_of(folder), dict(mark.get("versions", {})), True)
        check_machine(build)
        interpreter = choose_python(build)
        if folder.exists():
            report(Progress("removing what was there before"))
            shutil.rmtree(folder)
        log = state_root() / "install" / f"{folder.name}.log"  # kept only if it fails
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("", encoding="utf-8")
        try:
            check_space(folder, build)
            EnvironmentInstaller(folder, build, interpreter, report, log).run()
            report(Progress("checking that it works"))
            versions = check(python_of(folder), build)
            document = {"ready": True, "build": build.name, "version": build.version, "versions": versions}
            document |= {"lock": locked, "made": time.time()}
            (folder / MARK).write_text(json.dumps(document, indent=1), encoding="utf-8")
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, StoppedError | KeyboardInterrupt):
                log.unlink(missing_ok=True)
            raise
        log.unlink(missing_ok=True)
        return Installed(folder, python_of(folder), versions, False)


def check_machine(build: Build) -> None:
    """Raise EnvironmentLacksError if a build cannot run on this machine. Runs before any download."""
    here = f"{platform.system()} {platform.machine()}"
    if build.machines and here not in build.machines:
        raise EnvironmentLacksError(
            f"This build of vLLM is for {' and '.join(build.machines)} only; this is {here}.",
            "Name a vLLM of your own (--vllm-python FILE) or a server on another machine (--endpoint URL).",
        )
    for library, package in build.libraries.items():
        try:
            ctypes.CDLL(library)
        except OSError:
            raise EnvironmentLacksError(
                f"This build of vLLM needs the library {library}, which is not here.",
                f"Install it first (Debian, Ubuntu: sudo apt-get install {package}).",
            ) from None


def check_space(folder: Path, build: Build) -> None:
    """Raise EnvironmentLacksError if the disk has too little space for a build."""
    free = free_disk_gib(folder)
    if free < build.disk_gib:
        raise EnvironmentLacksError(
            f"vLLM takes about {build.disk_gib:.0f} GiB, and {free:.1f} GiB are free for {folder}.",
            "Make room, or set MAI_SERVER_ENVIRONMENTS to a folder on a larger disk.",
        )


def check(python: Path, build: Build) -> dict[str, Any]:
    """Check that vLLM's parser works and that torch can use the cards (or CPU kernels). Return the versions.

    Raises EnvironmentLacksError with the last line of the error output if something fails.
    """
    # Allow bytecode files, so that the first start need not compile the modules imported here.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    on_processor = build.least_driver is None
    code = _PROCESSOR_CHECK if on_processor else _TORCH_CHECK
    try:
        done = subprocess.run(
            [str(python), "-c", code], capture_output=True, text=True, timeout=_CHECK_SECONDS, check=False, env=environ
        )
        reason = (done.stderr.strip().splitlines() or ["nothing"])[-1]
    except subprocess.TimeoutExpired:
        done, reason = None, f"no answer within {_CHECK_SECONDS} s"
    failed = f"vLLM {build.version} was installed, but does not work here"
    if done is None or done.returncode != 0:
        driver = f"Driver {build.least_driver} or newer is needed; `mai-server doctor` shows the one that is there."
        raise EnvironmentLacksError(
            f"{failed}: {reason[:300]}. It was removed again.", _OTHER_BUILDS if on_processor else driver
        )
    try:
        dump = ask_parser(python)
    except EnvironmentLacksError as error:
        raise EnvironmentLacksError(f"{failed}: {error.what} It was removed again.", _OTHER_BUILDS) from error
    versions: dict[str, Any] = {"vllm": dump["vllm"], "transformers": dump.get("transformers")}
    return versions | dict(json.loads(done.stdout.strip().splitlines()[-1]))


def choose_python(build: Build) -> str:
    """Return a Python that the build supports: ours, or another on PATH. Raises EnvironmentLacksError without one."""
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


def remove(build: Build) -> bool:
    """Remove a build's environment. Return whether there was one."""
    folder = environment_folder(build)
    if not folder.exists():
        return False
    with _only_one(folder.parent):
        shutil.rmtree(folder, ignore_errors=True)
    return True


def with_version(build: Build, version: str) -> Build:
    """Return a build with another version of vLLM, without a lock. Raises UsageError for text that is no version."""
    if not re.fullmatch(r"\d+\.\d+(\.\d+)?([a-z0-9.+-]*)?", version):
        raise UsageError(f"{version!r} is no version.", "It looks like 0.33.0.")
    if version == build.version:
        return build
    packages = tuple(re.sub(r"==.*", f"=={version}", package) for package in build.packages)
    about = f"vLLM {version}, which was not tried here (the supported one of this build is {build.version})"
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < _LEAST_FOR_MAI_UI:
        about += "; MAI-UI needs vLLM {}.{} or newer".format(*_LEAST_FOR_MAI_UI)
    return replace(build, version=version, packages=packages, about=about, lock=None)


def _stopped() -> StoppedError:
    return StoppedError("Stopped by a signal.", "Nothing of it is left; the same command begins anew.")


@contextlib.contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Allow one installation in a folder at a time. The folder itself is locked, so no lock file is left behind."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MaiError("Another `mai-server install` is running there.", "Wait for it.") from None
        yield
    finally:
        os.close(lock)
