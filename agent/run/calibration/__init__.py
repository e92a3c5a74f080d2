"""Finds out where a model clicks before a run: asks for marks at known places, and fits its answers.

`trial.py` draws the marks, asks and decides, `fit.py` (pure) finds the answers' coordinate space, `remembered.py` does
it once for the models of a run, and remembers it.
"""
