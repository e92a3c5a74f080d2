"""Recognizes browser windows with our page: the model may not see or touch them, like our terminal.

Otherwise the model could answer the questions that the page asks the person.
"""

import secrets
import threading

_MARK = f"mai-agent {secrets.token_hex(4)}"
_served = threading.Event()


def serve_page() -> str:
    """Return the mark for the title of our page. From now on, windows with the mark in their title are ours."""
    _served.set()
    return _MARK


def is_page_served() -> bool:
    """Return whether this process serves a page."""
    return _served.is_set()


def shows_our_page(title: str) -> bool:
    """Return whether a window of this title shows our page."""
    return _served.is_set() and _MARK in title
