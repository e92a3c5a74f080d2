"""Finds out where a model clicks before it clicks: marks at known places are asked for, and its answers are fitted.

`picture.py` draws the marks, `fit.py` (pure) tells the space in which the answers count, `trial.py` asks and decides,
`memory.py` remembers, `before_run.py` does it once for the models of a run.
"""
