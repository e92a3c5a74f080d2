"""Starts, watches, repairs and stops servers. Only the supervisor writes a server's state; others read its file.

A server has three levels of processes: the supervisor (in the background), the guardian (leads the server's session
and kills it when the supervisor dies), and vLLM with its children.
"""
