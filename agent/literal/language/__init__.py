"""Parses sentences into goals."""
