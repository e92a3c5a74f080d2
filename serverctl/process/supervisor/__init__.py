"""What runs in the background process of one server: it owns the state, starts vLLM, watches, repairs and stops it."""
