"""The builds of vLLM that can be installed from here, the one for a machine, and the environments that hold a vLLM."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foundation.configs import load_config
from foundation.errors import EnvironmentLacksError
from foundation.files import read_json_object
from serverctl.hardware.facts import Driver, Hardware
from serverctl.hardware.supported import WAYS_OUT, CannotPlanError, usable_cards
from serverctl.paths import environments_root

#: Written into an environment when everything in it was checked.
MARK = "mai-server.json"


@dataclass(frozen=True, slots=True)
class Build:
    """A build of vLLM that `mai-server install` makes (`configs/vllm/builds.toml`)."""

    name: str
    version: str
    packages: tuple[str, ...]
    python_most: tuple[int, int]
    disk_gib: float
    about: str
    least_driver: int | None = None
    least_cuda: tuple[int, int] | None = None
    lock: str | None = None  # the file below `configs/` with all packages and their hashes, torch left out
    torch: str | None = None  # which torch goes with the lock
    torch_finder: str | None = None  # the uv that finds that torch where pip does not
    machines: tuple[str, ...] = ()  # systems and processors that it runs on; () for all
    libraries: Mapping[str, str] = field(default_factory=dict)  # that it is linked with, and their Debian packages


def builds() -> tuple[Build, ...]:
    """The known builds, the most wanted first."""
    entries: list[dict[str, Any]] = load_config("vllm/builds.toml")["build"]
    return tuple(_build(entry) for entry in entries)


def _build(entry: dict[str, Any]) -> Build:
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
    return Build(**values)


def build_for(hardware: Hardware) -> Build:
    """The build of vLLM for this machine, by its driver. Raises CannotPlanError, which says what to change."""
    known = {build.name: build for build in builds()}
    usable_cards(hardware)  # a card that no build serves is not worth a new driver
    if hardware.vendor == "cpu":
        return known["cpu"]
    if hardware.vendor != "nvidia":
        raise CannotPlanError(
            f"vLLM for {hardware.gpus[0].name} is not among the builds that can be installed from here.",
            _BUILD_REMEDIES.get(hardware.vendor, WAYS_OUT + "."),
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


def _serves(driver: Driver, build: Build) -> bool:
    if driver.cuda is not None and build.least_cuda is not None:
        return driver.cuda >= build.least_cuda
    return driver.major is not None and build.least_driver is not None and driver.major >= build.least_driver


_BUILD_REMEDIES = {
    "gaudi": "Install vLLM with the vllm-gaudi plugin as its README says (source or its Docker image; vLLM and plugin "
    "must match, for example 0.26 with 0.26), then name its Python: --vllm-python FILE.",
    "amd": "Install vLLM's ROCm build as vLLM's documentation says, then name its Python: --vllm-python FILE.",
    "apple": WAYS_OUT + ".",
}


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
    """Return the mark that `install` wrote when it finished; None for an unfinished environment."""
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
