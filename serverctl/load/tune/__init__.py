"""What holds a server up under its load, what would help, and whether it did: by its own counters and by a bench."""
