"""The terminal application: watch, steer and stop runs. The core knows nothing of it."""
