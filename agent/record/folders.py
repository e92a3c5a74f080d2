"""Where recorded runs are kept."""

from pathlib import Path

from agent.settings import Settings
from foundation.configs import state_folder


def runs_dir(given: Path | None, settings: Settings) -> Path:
    """The folder of the recorded runs: the one of the command line, of the settings, or the user's state folder."""
    if given is not None:
        return given
    return Path(settings.get("runs")).expanduser() if settings.get("runs") else state_folder() / "runs"
