"""Where things are kept that no other place was named for: runs, what is running, what the application remembers."""

import os
from pathlib import Path


def state_folder() -> Path:
    """The folder that MAI_AGENT_STATE names, or the user's own; it need not exist."""
    if named := os.environ.get("MAI_AGENT_STATE"):
        return Path(named).expanduser()
    import platformdirs

    return Path(platformdirs.user_state_dir("mai-agent", appauthor=False))
