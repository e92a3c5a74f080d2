"""The built-in engine: follows literal instructions by reading the screen's text; no GPU, no download."""
