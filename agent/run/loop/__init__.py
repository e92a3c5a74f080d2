"""The loop, and how it carries out what was decided."""
