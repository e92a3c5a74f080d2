"""Limits what a run may see and touch: our own windows and hidden windows stay out of sight and reach."""
