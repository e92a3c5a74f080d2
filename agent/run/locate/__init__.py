"""Locates a model's points: grounding, closer looks, contradictions."""
