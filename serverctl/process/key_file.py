"""Reads the key of an API that the user chose, from a file: other users of the machine can read command lines."""

import re
import stat
import sys
from pathlib import Path

from foundation.errors import UsageError

#: Characters that pass unchanged through HTTP headers, environments and the configuration of routers.
_KEY = re.compile(r"[A-Za-z0-9._~+/=-]{16,512}")


def read_key(name: str | None) -> str:
    """Return the key in a file, or on standard input for "-"; "" without a name. Raises UsageError."""
    if name is None:
        return ""
    path = Path(name).expanduser()
    try:
        text = sys.stdin.readline() if name == "-" else path.read_text(encoding="utf-8")
        mode = 0 if name == "-" else path.stat().st_mode
    except (OSError, ValueError) as error:
        raise UsageError(f"The key file {name} cannot be read: {error}.", "Is the name right?") from error
    if stat.S_ISREG(mode) and mode & 0o077:
        raise UsageError(f"Other users may read or change the key file {path}.", f"`chmod 600 {path}` ends that.")
    key = text.strip()
    if not _KEY.fullmatch(key):
        raise UsageError(
            f"The key file {name} holds no key: one line of 16 to 512 letters, digits and . _ ~ + / = - is wanted.",
            "`openssl rand -hex 24` makes one.",
        )
    return key
