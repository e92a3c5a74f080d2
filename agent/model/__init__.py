"""Asking a model: messages, the client of any OpenAI-compatible server, its refusals, and the choice of an engine."""
