"""The loop as an async stream of typed events, with its history window, loop guard and budgets."""
