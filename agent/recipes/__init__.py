"""Recipes: steps of a recorded run that are done again without a model."""
