"""The controller's folders: state of servers, environments of vLLM, memory of earlier starts."""

import os
import shutil
from pathlib import Path

import platformdirs


def state_root() -> Path:
    """The folder of everything that changes: MAI_SERVER_STATE, or the user's state folder."""
    named = os.environ.get("MAI_SERVER_STATE")
    return Path(named) if named else Path(platformdirs.user_state_dir("mai-server", appauthor=False))


def servers_root() -> Path:
    """The folder that has one for each named server."""
    return state_root() / "servers"


def calibration_file() -> Path:
    """What real starts took."""
    return state_root() / "calibration.json"


def good_plans_file() -> Path:
    """The last adjustments that worked, by card, model and vLLM version."""
    return state_root() / "good-plans.json"


def environments_root() -> Path:
    """The folder of vLLM's own environments: MAI_SERVER_ENVIRONMENTS, or the user's data folder."""
    named = os.environ.get("MAI_SERVER_ENVIRONMENTS")
    return Path(named) if named else Path(platformdirs.user_data_dir("mai-server", appauthor=False)) / "vllm"


def free_disk_gib(path: Path) -> float:
    """Free space where a path is or will be, GiB."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return shutil.disk_usage(path).free / 1024**3
