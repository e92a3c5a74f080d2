"""Fara 1.5 (Microsoft, MIT)."""
