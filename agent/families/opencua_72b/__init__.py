"""OpenCUA 72B: the second version of the prompt."""
