"""UI-Venus 1.5: points on 0..1000, and a point that says that there is nothing of the kind."""
