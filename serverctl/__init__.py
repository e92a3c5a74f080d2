"""The server controller: the right vLLM for this machine, started, watched, repaired and explained.

A pure core (`hardware`, `models`, `plan`, `capabilities`, `diagnose`) says what is there, what to start and what went
wrong; one owner (`process`) alone starts and stops things. It never imports `agent`: the agent asks it for one thing,
an endpoint that is ready, with the limits it was started with.
"""
