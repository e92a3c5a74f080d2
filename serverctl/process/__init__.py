"""Starts, watches, repairs and stops servers. One owner task has the state; everybody else reads its file.

A server is three processes deep: the supervisor (owner of the state, in the background), the guardian (leader of the
server's own process group; ends it when the supervisor dies), and vLLM with everything it starts.
"""
