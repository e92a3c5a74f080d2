"""Undoes what a recorded run changed: what can be put back, in which order, and on which desktop."""
