"""Checks a run's claims against evidence, and undoes the changes in its receipt."""
