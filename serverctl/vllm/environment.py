"""Finds a vLLM to run: a Python that a person named, an installed environment, or the one we run in."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foundation.errors import EnvironmentLacksError
from foundation.files import read_json_object
from serverctl.hardware.facts import Hardware
from serverctl.paths import environments_root
from serverctl.vllm.builds import Build, build_for

#: Written into an environment when everything in it was checked.
MARK = "mai-server.json"


@dataclass(frozen=True, slots=True)
class VllmEnvironment:
    """A Python that has vLLM."""

    python: Path  # its interpreter
    version: str | None  # of vLLM, where known without asking it
    origin: str  # how it was found, for messages


def environment_folder(build: Build) -> Path:
    """Where a build's environment is made."""
    return environments_root() / f"{build.name}-{build.version}"


def read_mark(folder: Path) -> Mapping[str, Any] | None:
    """What `install` wrote when it finished; None for an environment that is not whole."""
    document = read_json_object(folder / MARK)
    return document if document.get("ready") else None


def python_of(folder: Path) -> Path:
    """The interpreter of a virtual environment."""
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def find_environment(named: str | None, hardware: Hardware) -> VllmEnvironment | None:
    """The vLLM to use: the named Python, our own environment when it has vLLM, or the installed build.

    Raises EnvironmentLacksError where the named Python is not there.
    """
    if named:
        python = Path(named).expanduser()
        if python.is_dir():
            python = python_of(python)
        if not python.is_file():
            raise EnvironmentLacksError(
                f"There is no Python at {named}.", "--vllm-python names the interpreter of an environment."
            )
        return VllmEnvironment(python.absolute(), None, "named by you")
    own = _own_vllm()
    if own is not None:
        return VllmEnvironment(Path(sys.executable), own, "in this environment")
    if hardware.vendor in ("nvidia", "cpu"):
        build = build_for(hardware)
        folder = environment_folder(build)
        if read_mark(folder) is not None:
            return VllmEnvironment(python_of(folder), build.version, f"installed: {folder}")
    return None


def _own_vllm() -> str | None:
    """vLLM's version beside us (`pip install mai-agent[vllm]`), None without one."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("vllm")
    except PackageNotFoundError:
        return None
