"""Asking a model: messages, the client of any OpenAI-compatible server, its errors, and the choice of an engine."""
