"""The locale of a sandbox: an installed one, or one built for it."""

import re
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from foundation.configs import state_folder
from foundation.errors import EnvironmentLacksError, UsageError

#: Source files of locales for glibc's `localedef`.
_SOURCES = Path("/usr/share/i18n/locales")
_NAME = re.compile(r"(?P<place>[a-z]{2,3}_[A-Z]{2})(?P<code>\.(?i:utf-?8))?(?P<variant>@[a-z]+)?")


def locale_environ(name: str) -> dict[str, str]:
    """Return the environment variables for a locale such as "de_DE.UTF-8"; only UTF-8 is allowed.

    A locale that is not installed is built once from the system's sources (a second or two) in mai-agent's state
    folder, without root. Raises UsageError for an unknown locale; EnvironmentLacksError if it cannot be built.
    """
    parts = _NAME.fullmatch(name)
    if parts is None:
        raise UsageError(f"{name!r} is no locale.", "Name a language and a country, as in de_DE.UTF-8 or fr_FR.")
    source = parts["place"] + (parts["variant"] or "")
    full = f"{parts['place']}.UTF-8{parts['variant'] or ''}"
    language = {"LANG": full, "LANGUAGE": parts["place"]}
    with suppress(OSError, subprocess.SubprocessError):
        listed = subprocess.run(["locale", "-a"], capture_output=True, text=True, timeout=10, check=False).stdout
        if full.replace("UTF-8", "utf8") in listed.split():
            return language
    folder = state_folder() / "locales"
    if not (folder / full).is_dir():
        _make(source, folder / full)
    return language | {"LOCPATH": str(folder)}


def _make(source: str, target: Path) -> None:
    if shutil.which("localedef") is None or not _SOURCES.is_dir():
        raise EnvironmentLacksError(
            f"The locale {target.name} is not on this system, and what it could be made from is not installed.",
            "Install it: apt-get install --no-install-recommends locales",
        )
    if not (_SOURCES / source).is_file():
        language = source.partition("_")[0]
        near = sorted(path.name for path in _SOURCES.glob(f"{language}_*"))
        raise UsageError(
            f"This system knows no locale {target.name}.",
            f"It knows {', '.join(near)}." if near else f"`ls {_SOURCES}` shows those that it knows.",
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as making:
        made = Path(making, target.name)
        # The exit status is no criterion: warnings, which many locales cause, set it too.
        done = subprocess.run(
            ["localedef", "--no-archive", "-i", source, "-f", "UTF-8", str(made)],
            capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if not (made / "LC_CTYPE").is_file():
            last = (done.stderr.strip().splitlines() or ["it does not say why"])[-1]
            raise EnvironmentLacksError(f"The locale {target.name} could not be made ({last}).")
        try:
            made.rename(target)
        except OSError:
            if not target.is_dir():  # else another start has built it meanwhile
                raise
