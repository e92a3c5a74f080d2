"""Tests a desktop with a window of our own: whether captures show it and input reaches it (`doctor --try`)."""
