"""What a run tells, as typed events, and what became of its actions."""
