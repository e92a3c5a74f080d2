"""GUI-Owl 1.5 (X-PLUG)."""
