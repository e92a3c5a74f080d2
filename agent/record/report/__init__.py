"""The HTML report of a run: one file that shows every step, asks the network for nothing and runs only our own code."""
