"""Shared code of `agent` and `serverctl`, which knows neither agents nor servers."""
