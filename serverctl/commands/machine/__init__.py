"""Commands about this machine: what it has, its vLLM, its models."""
