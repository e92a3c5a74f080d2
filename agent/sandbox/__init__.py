"""A throw-away desktop to run in without touching the person's own."""
