"""The typed events of a run, and the fates of its actions."""
