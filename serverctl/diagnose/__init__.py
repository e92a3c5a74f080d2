"""Classifies failures from vLLM's log and exit status, and chooses the next start or a stop with an explanation."""
