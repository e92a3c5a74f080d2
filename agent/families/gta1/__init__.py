"""GTA1: finds places."""
