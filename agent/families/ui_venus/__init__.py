"""UI-Venus 1; what it shares with 1.5 is in `base.py`, `calls.toml` and `skeleton.toml`."""
