"""What cannot be served, said before anything is planned or installed, with the ways out."""

from dataclasses import dataclass
from typing import Any

from foundation.configs import load_config
from serverctl.hardware.facts import Driver, Gpu, Hardware
from serverctl.plan.goal import CannotPlanError

#: The oldest compute capability in vLLM's wheel (its fatbins hold 75, 80, 86, 89, 90, 100, 120).
LEAST_SM = 75

WAYS_OUT = (
    "The built-in literal engine needs no card (--engine literal), and a server on another machine can be named "
    "(--endpoint URL)"
)


@dataclass(frozen=True, slots=True)
class Build:
    """A build of vLLM that `mai-server install` makes (`configs/vllm/builds.toml`)."""

    name: str
    version: str
    packages: tuple[str, ...]
    least_driver: int | None
    least_cuda: tuple[int, int] | None
    python_most: tuple[int, int]
    disk_gib: float
    about: str


def builds() -> tuple[Build, ...]:
    """The known builds, the most wanted first."""
    entries: list[dict[str, Any]] = load_config("vllm/builds.toml")["build"]
    return tuple(
        Build(
            entry["name"],
            entry["version"],
            tuple(entry["packages"]),
            entry.get("least_driver"),
            tuple(entry["least_cuda"]) if "least_cuda" in entry else None,
            tuple(entry["python_most"]),
            entry["disk_gib"],
            entry["about"],
        )
        for entry in entries
    )


def build_for(hardware: Hardware) -> Build:
    """The build of vLLM for this machine, by its driver.

    Raises:
        CannotPlanError: none is for it; the message says what to change.
    """
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


def usable_cards(hardware: Hardware) -> tuple[Gpu, ...]:
    """The cards that vLLM can serve on.

    Raises:
        CannotPlanError: there are cards, and it can serve on none of them.
    """
    if not hardware.gpus:
        return ()
    if hardware.vendor == "apple":
        raise CannotPlanError(
            f"vLLM does not serve these models on {hardware.gpus[0].name}: it has no build for Apple's GPUs.",
            f"Serve the model with another program on this machine (MLX, llama.cpp) and name it. {WAYS_OUT}.",
        )
    usable = tuple(gpu for gpu in hardware.gpus if gpu.vendor != "nvidia" or gpu.sm is None or gpu.sm >= LEAST_SM)
    if usable:
        return usable
    gpu = hardware.gpus[0]
    capability = ".".join(str(part) for part in gpu.compute_capability or ())
    raise CannotPlanError(
        f"vLLM no longer serves on {gpu.name}: its compute capability is {capability}, and vLLM's wheels start at 7.5.",
        f"Serve the model with llama.cpp on this card and name it with --endpoint. {WAYS_OUT}.",
    )
