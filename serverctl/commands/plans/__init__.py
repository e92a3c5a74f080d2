"""Commands about plans: make, compare and export them; what a vLLM accepts."""
