"""Desktops behind one protocol (`base.py`), chosen by `factory.py`; and what is common to all of them."""
