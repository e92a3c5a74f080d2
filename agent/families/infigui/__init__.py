"""InfiGUI-G1: finds places."""
