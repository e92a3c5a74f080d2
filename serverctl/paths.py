"""The controller's files and folders: state of servers, environments of vLLM, results of earlier starts."""

import os
import shutil
from pathlib import Path

import platformdirs


def state_root() -> Path:
    """Return the folder for all state: MAI_SERVER_STATE, or the user's state folder."""
    named = os.environ.get("MAI_SERVER_STATE")
    return Path(named) if named else Path(platformdirs.user_state_dir("mai-server", appauthor=False))


def servers_root() -> Path:
    """Return the folder with one subfolder per server."""
    return state_root() / "servers"


def calibration_file() -> Path:
    """Return the file with the measured memory of real starts."""
    return state_root() / "calibration.json"


def good_plans_file() -> Path:
    """Return the file with the adjustments that last worked, by card, model and version of vLLM."""
    return state_root() / "good-plans.json"


def environments_root() -> Path:
    """Return the folder of vLLM's environments: MAI_SERVER_ENVIRONMENTS, or the user's data folder."""
    named = os.environ.get("MAI_SERVER_ENVIRONMENTS")
    return Path(named) if named else Path(platformdirs.user_data_dir("mai-server", appauthor=False)) / "vllm"


def free_disk_gib(path: Path) -> float:
    """Return the free disk space in GiB for a path, which need not exist yet."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return shutil.disk_usage(path).free / 1024**3
