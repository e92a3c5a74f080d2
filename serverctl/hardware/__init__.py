"""Detects this machine's cards, accelerators, CPU and memory from the output of tools."""
