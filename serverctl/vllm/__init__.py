"""Builds, environments, installation and flags of vLLM."""
