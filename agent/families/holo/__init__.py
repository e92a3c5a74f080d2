"""What the models of H Company share: their tools, and the questions for a point."""
