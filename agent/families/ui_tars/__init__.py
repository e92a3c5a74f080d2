"""UI-TARS in all versions. They share `family.py`, `calls.toml` and `skeleton.toml`."""
