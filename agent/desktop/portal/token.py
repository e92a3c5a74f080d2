"""What the desktop gave us so that the person is not asked again: kept for this user alone, and good for one time."""

from contextlib import suppress
from pathlib import Path

from foundation.configs import state_folder
from foundation.files import read_json_object, write_atomically


class RestoreToken:
    """The token of the last session that was allowed.

    Args:
        path: the file, of mode 0600; None for the one in the state folder.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or state_folder() / "portal.json"

    def read(self) -> str:
        """The token; "" where there is none."""
        token = read_json_object(self._path).get("restore_token")
        return token if isinstance(token, str) else ""

    def keep(self, token: str) -> None:
        """Keep what a start returned; "" forgets. A disk that cannot be written costs a question the next time."""
        import json

        with suppress(OSError):
            if not token:
                self._path.unlink(missing_ok=True)
                return
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(self._path, json.dumps({"restore_token": token}))
