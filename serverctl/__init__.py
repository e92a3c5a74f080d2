"""The server controller: the room for starting, watching and repairing the local vLLM.

It is not built yet. `agent` asks it for one thing only, an endpoint that is ready with the limits it was started
with; until it can answer, `agent.engine` uses a configured endpoint or the literal engine.
"""
