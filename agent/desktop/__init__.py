"""Desktops behind one protocol (`protocol/`), chosen by `factory.py`."""
