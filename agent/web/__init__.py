"""The window in the browser: a run's report as a live page on loopback, with the person's decisions."""
