"""How the person and the stop switch control a run: steering, waits that a stop ends, worker threads."""
