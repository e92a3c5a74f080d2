"""Reads the words on a screenshot, for the literal engine; how is in `agent.screen.ocr`.

A second, closer look finds what the first cannot: single characters on keys, and text on dark or busy ground.
"""

from agent.screen import ocr
from agent.screen.ocr import Box, Word

__all__ = ["Box", "Ocr", "Word", "data_folder"]

_WHO = "The literal engine"


def data_folder() -> str:
    """The folder of tesseract's language data.

    Raises:
        EnvironmentLacksError: it is not installed.
    """
    return ocr.data_folder(_WHO)


class Ocr(ocr.Ocr):
    """Tesseract, loaded once (60 ms) and used by one caller at a time.

    Raises:
        EnvironmentLacksError: the language data is missing.
    """

    def __init__(self) -> None:
        super().__init__(_WHO)
