"""Tools of MCP servers for the model that drives a run."""
