"""The ways in which models write calls, shared by the families: every reader is total, and none runs what it reads."""
