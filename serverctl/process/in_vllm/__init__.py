"""Code that runs inside vLLM's process. The folder is on that process's PYTHONPATH, so it must contain nothing else."""
