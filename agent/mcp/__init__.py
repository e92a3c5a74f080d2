"""Access for coding agents: an MCP server with a desktop's tools, and its entry in the hosts' settings."""
