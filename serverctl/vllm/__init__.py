"""Which vLLM serves: its builds and environments, its installation, and the flags that it accepts."""
