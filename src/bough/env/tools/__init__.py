"""Functions, MCP servers and databases as environments of tools."""
