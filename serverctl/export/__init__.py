"""Exports a plan for other supervisors and other machines. Each format has its own module."""
