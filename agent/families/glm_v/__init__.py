"""GLM-4.1V to GLM-4.6V: one user message holds everything, the call stands between box tokens."""
