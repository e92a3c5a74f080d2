"""Holo2 (H Company)."""
