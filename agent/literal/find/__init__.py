"""Finds elements on the screen by the names that a person uses."""
