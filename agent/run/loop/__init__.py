"""The loop, and how it carries out decisions."""
