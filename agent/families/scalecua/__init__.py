"""ScaleCUA."""
