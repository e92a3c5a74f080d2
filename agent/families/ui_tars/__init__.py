"""UI-TARS of every version: what they share is in `base.py`, `calls.toml` and `skeleton.toml`."""
