"""The policy, which decides outside the model what needs approval, and the stop switch."""
