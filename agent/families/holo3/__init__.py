"""Holo3, Holo3.1 and Holo4 (H Company): one object per answer, or native function calls."""
