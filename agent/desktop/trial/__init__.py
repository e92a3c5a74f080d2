"""Tries a desktop out in a window of our own: what is really seen, and what really arrives."""
