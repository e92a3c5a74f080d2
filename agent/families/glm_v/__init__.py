"""GLM-4.1V to GLM-4.6V: one user message with everything, and a call between box tokens."""
