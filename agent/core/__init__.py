"""The vocabulary of every other room: actions, geometry, keys, changes and notes. Knows no model and no desktop."""
