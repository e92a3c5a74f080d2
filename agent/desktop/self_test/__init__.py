"""Checks a desktop in a window of our own: what is really seen, and what really arrives (`doctor --try`)."""
