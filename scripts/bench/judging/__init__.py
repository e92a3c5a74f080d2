"""What the sentences benchmark judges by: entries, the desktop's own state, verdicts; nothing of the agent's."""
