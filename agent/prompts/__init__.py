"""The prompts that families' publishers wrote: fetched, checked, kept in the user's data folder, and parsed."""
