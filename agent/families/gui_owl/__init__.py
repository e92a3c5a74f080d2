"""GUI-Owl 7B and 32B (X-PLUG)."""
