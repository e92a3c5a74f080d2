"""Evaluations: a model asked about published samples, and its answers judged by published rules.

Answers are kept as they came; verdicts are a pure function of the answers and the samples.
"""
