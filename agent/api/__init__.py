"""The Python API for runs; `mai_agent` is its public part."""
