"""What limits a server under its load, what would help, and whether it did: by its counters and by a bench."""
