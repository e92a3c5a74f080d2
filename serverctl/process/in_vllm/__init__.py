"""What runs inside vLLM's own process. Its folder is on that process's path, so nothing else may be in it."""
