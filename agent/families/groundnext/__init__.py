"""GroundNext: finds places."""
