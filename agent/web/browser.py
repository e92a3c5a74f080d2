"""Opens a page in the person's browser."""

import subprocess
import sys
import webbrowser
from collections.abc import Mapping


def open_browser(link: str, environ: Mapping[str, str]) -> bool:
    """Open the page in the person's browser; False if there is no screen to open it on.

    `environ` is the person's: the environment of a process that started a sandbox names the sandbox's display.
    """
    if sys.platform.startswith("linux") and not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        return False
    try:
        webbrowser.get()
        # A process of its own: standard output is the host's, and a browser may write to it.
        subprocess.Popen(
            [sys.executable, "-P", "-m", "webbrowser", "-n", link], env=environ, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except (webbrowser.Error, OSError):
        return False
    return True
