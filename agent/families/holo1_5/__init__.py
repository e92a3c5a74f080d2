"""Holo1.5 (H Company)."""
