"""Installed applications: found by the words a person uses, started detached, waited for."""
