"""OpenCUA 7B and 32B; what all families that answer in code share is in `base.py` and `skeleton.toml`."""
