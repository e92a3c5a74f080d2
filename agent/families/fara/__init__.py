"""Fara-7B (Microsoft, MIT)."""
