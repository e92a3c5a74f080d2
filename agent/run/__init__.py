"""One run: the loop as an async stream of typed events, with its history window, loop detector and budgets."""
