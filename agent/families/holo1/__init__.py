"""Holo1 (H Company)."""
