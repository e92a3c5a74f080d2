"""Facts, a model and a goal make a plan: every setting with its reason and source, and the memory it will take."""
