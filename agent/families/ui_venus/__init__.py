"""UI-Venus 1. It shares `family.py`, `calls.toml` and `skeleton.toml` with 1.5."""
