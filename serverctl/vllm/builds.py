"""The builds of vLLM that can be installed from here, and the one for a machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from foundation.configs import load_config
from serverctl.hardware.facts import Driver, Hardware
from serverctl.hardware.supported import WAYS_OUT, CannotPlanError, usable_cards


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
