"""Finds the bottleneck of a server under load by its counters, advises changes, and tests them with a bench."""
