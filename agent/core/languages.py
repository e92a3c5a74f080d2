"""The languages of a desktop's applications."""

import re
from collections.abc import Mapping

_TAG = re.compile(r"([A-Za-z]{2,8})(_[A-Za-z0-9]{2,8})?(?:\.[^@]*)?(@[A-Za-z0-9]{1,16})?")


def languages_of(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the language tags that gettext tries, best first; none in the C locale.

    For de_AT@euro these are de_AT@euro, de_AT, de@euro and de.
    """
    locale = next((environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "C")
    if locale.partition(".")[0] in ("C", "POSIX"):  # then gettext ignores LANGUAGE
        return ()
    tags: list[str] = []
    for found in filter(None, map(_TAG.fullmatch, (*environ.get("LANGUAGE", "").split(":"), locale))):
        language, country, modifier = found[1], found[2] or "", found[3] or ""
        tags += [language + country + modifier, language + country, language + modifier, language]
    return tuple(dict.fromkeys(tags))
