"""OpenCUA 7B and 32B. `family.py` and `skeleton.toml` are the base of all families that answer in code."""
