"""Makes a plan from hardware, a model and a goal: every setting with its reason and source, and the memory."""
