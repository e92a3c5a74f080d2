"""InternVL3: finds places."""
