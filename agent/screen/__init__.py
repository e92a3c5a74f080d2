"""What the agent sees: monitors, capture, settling, the fit to a model's pixel budget, and encoding."""
