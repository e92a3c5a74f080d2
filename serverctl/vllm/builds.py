"""Lists the installable builds of vLLM, chooses one for a machine, and finds environments with vLLM."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foundation.configs import load_config
from foundation.errors import EnvironmentLacksError
from foundation.files import read_json_object
from serverctl.hardware.facts import WAYS_OUT, CannotPlanError, Driver, Hardware, usable_cards
from serverctl.paths import environments_root

#: File in an environment that marks it as complete and checked.
MARK = "mai-server.json"


@dataclass(frozen=True, slots=True)
class Build:
    """A build of vLLM that `mai-server install` can install (`configs/vllm/builds.toml`)."""

    name: str
    version: str
    packages: tuple[str, ...]
    python_most: tuple[int, int]
    disk_gib: float
    about: str
    least_driver: int | None = None
    least_cuda: tuple[int, int] | None = None
    #: the driver released with its CUDA; drivers from least_driver up to this one were not tested
    shipped_driver: int | None = None
    lock: str | None = None  # lock file below `configs/` with all packages and hashes, without torch
    torch: str | None = None  # the requirement for torch that matches the lock
    torch_finder: str | None = None  # the requirement for uv, which finds that torch if pip does not
    machines: tuple[str, ...] = ()  # supported systems and architectures; () for all
    libraries: Mapping[str, str] = field(default_factory=dict)  # required shared libraries, and their Debian packages


def builds() -> tuple[Build, ...]:
    """Return the known builds in order of preference."""
    found = []
    for entry in load_config("vllm/builds.toml")["build"]:
        values: dict[str, Any] = {key: tuple(part) if isinstance(part, list) else part for key, part in entry.items()}
        found.append(Build(**values))
    return tuple(found)


def build_for(hardware: Hardware) -> Build:
    """Return the build of vLLM for the hardware and its driver. Raises CannotPlanError if there is none."""
    known = {build.name: build for build in builds()}
    usable_cards(hardware)  # raises for an unsupported card, before any advice to update its driver
    if hardware.vendor == "cpu":
        return known["cpu"]
    if hardware.vendor != "nvidia":
        raise CannotPlanError(
            f"vLLM for {hardware.gpus[0].name} is not among the builds that can be installed from here.",
            BUILD_REMEDIES.get(hardware.vendor, WAYS_OUT + "."),
        )
    driver = hardware.driver
    if driver is None:
        raise CannotPlanError("The NVIDIA driver's version is not known.", "`nvidia-smi` must work first.")
    for build in known.values():
        if build.least_driver is not None and _serves(driver, build):
            return build
    oldest = min((build for build in known.values() if build.least_driver), key=lambda build: build.least_driver or 0)
    raise CannotPlanError(
        f"The NVIDIA driver {driver.version} is too old for every build of vLLM that serves these models.",
        f"Install driver {oldest.least_driver} or newer ({known['cuda13'].least_driver} for the newest vLLM). "
        f"{WAYS_OUT}.",
    )


def driver_warning(hardware: Hardware) -> str:
    """Return a warning if the driver is older than the build's CUDA, which promises to run on it; "" otherwise."""
    driver = hardware.driver
    if hardware.vendor != "nvidia" or hardware.imagined or driver is None:
        return ""
    build = build_for(hardware)
    if build.shipped_driver is None or driver.major is None or driver.major >= build.shipped_driver:
        return ""
    return (
        f"Driver {driver.version} is older than the one that came with this vLLM's CUDA ({build.shipped_driver}): "
        "CUDA 12 promises that it runs (minor-version compatibility), but nobody tried it here; newer drivers are "
        "safer."
    )


def _serves(driver: Driver, build: Build) -> bool:
    if driver.cuda is not None and build.least_cuda is not None:
        return driver.cuda >= build.least_cuda
    return driver.major is not None and build.least_driver is not None and driver.major >= build.least_driver


#: How vLLM gets onto a machine with cards of a maker, where no build of ours does it.
BUILD_REMEDIES = {
    "gaudi": "Install vLLM with the vllm-gaudi plugin as its documentation says: its Docker image, or both from "
    "source (vLLM with VLLM_TARGET_DEVICE=empty, then the plugin; their versions must match, for example 0.30 with "
    "0.30 on Gaudi software 1.24). Then name its Python: --vllm-python FILE.",
    "amd": "Install vLLM's ROCm build as vLLM's documentation says, then name its Python: --vllm-python FILE.",
    "apple": WAYS_OUT + ".",
}


@dataclass(frozen=True, slots=True)
class VllmEnvironment:
    """A Python environment with vLLM."""

    python: Path  # its interpreter
    version: str | None  # of vLLM; None if unknown without running it
    origin: str  # how it was found, for messages


def environment_folder(build: Build) -> Path:
    """Return the folder for a build's environment."""
    return environments_root() / f"{build.name}-{build.version}"


def read_mark(folder: Path) -> Mapping[str, Any] | None:
    """Return the mark that `install` wrote when it finished; None for an unfinished environment."""
    document = read_json_object(folder / MARK)
    return document if document.get("ready") else None


def python_of(folder: Path) -> Path:
    """Return the interpreter of a virtual environment."""
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def find_environment(named: str | None, hardware: Hardware) -> VllmEnvironment | None:
    """Find the vLLM to use: the named Python, our own environment if it has vLLM, or the installed build.

    Return None if there is none. Raises EnvironmentLacksError if the named Python does not exist.
    """
    from importlib.metadata import PackageNotFoundError, version

    if named:
        python = Path(named).expanduser()
        if python.is_dir():
            python = python_of(python)
        if not python.is_file():
            raise EnvironmentLacksError(
                f"There is no Python at {named}.", "--vllm-python names the interpreter of an environment."
            )
        return VllmEnvironment(python.absolute(), None, "named by you")
    with suppress(PackageNotFoundError):  # of `pip install mai-agent[vllm]`
        return VllmEnvironment(Path(sys.executable), version("vllm"), "in this environment")
    if hardware.vendor in ("nvidia", "cpu"):
        build = build_for(hardware)
        folder = environment_folder(build)
        if read_mark(folder) is not None:
            return VllmEnvironment(python_of(folder), build.version, f"installed: {folder}")
    return None
