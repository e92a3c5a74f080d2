"""In which languages a screen is read: the desktop's own, where tesseract has it, and English.

The own one comes first: so tesseract 5.5 read all of 30 German captions, with English first 22 of them, with English
alone 17; the time is the same.
"""

from collections.abc import Mapping
from pathlib import Path

from agent.screen.ocr import data_folder
from foundation.configs import load_config
from foundation.errors import EnvironmentLacksError

ENGLISH = "eng"


def desktop_language(environ: Mapping[str, str]) -> str:
    """The language of applications that are started in an environment, such as de_DE; "" where none is told."""
    locale = environ.get("LC_ALL") or environ.get("LC_MESSAGES") or environ.get("LANG") or ""
    if locale.partition(".")[0] in ("C", "POSIX", ""):  # gettext looks at LANGUAGE in real locales only
        return ""
    told = environ.get("LANGUAGE", "").partition(":")[0] or locale
    return told.partition(".")[0].partition("@")[0]


def reading_languages(environ: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """Tesseract's languages for what applications of an environment show, and what a person must know of them.

    The remark is "" where nothing is missing.
    """
    language = desktop_language(environ)
    known: Mapping[str, str] = load_config("reading.toml")["languages"]
    wanted = known.get(language) or known.get(language.partition("_")[0]) or ("" if language else ENGLISH)
    if not wanted:
        return (ENGLISH,), f"Words on the screen are read as English: tesseract has nothing for {language[:20]!r}."
    if wanted == ENGLISH:
        return (ENGLISH,), ""
    try:
        folder = Path(data_folder("Reading the words of the screen"))
    except EnvironmentLacksError:  # told by whoever reads
        return (ENGLISH,), ""
    if (folder / f"{wanted}.traineddata").is_file():
        return (wanted, ENGLISH), ""
    package = wanted.replace("_", "-")
    return (ENGLISH,), (
        f"Words on the screen are read as English, with mistakes in accents and umlauts: tesseract's data for this "
        f"desktop's language is missing (apt-get install tesseract-ocr-{package})."
    )
