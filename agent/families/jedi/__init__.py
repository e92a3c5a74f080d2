"""Jedi: finds places."""
