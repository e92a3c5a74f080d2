"""Finds out where a model clicks before a run: asks for marks at known places, and fits its answers.

`picture.py` draws the marks, `fit.py` (pure) finds the answers' coordinate space, `trial.py` asks and decides,
`remembered.py` does it once for the models of a run, and remembers it.
"""
