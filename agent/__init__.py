"""The application: see, think, act, and everything a person watches.

Importing this package touches no display, opens no socket and loads nothing heavy.
"""

__version__ = "0.1.0"
