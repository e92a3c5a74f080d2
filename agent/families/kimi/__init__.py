"""Kimi K2.5 and K2.6: OpenCUA's layout, with the thinking in the history."""
