"""`hookline mcp`: the same hooks in front of any MCP server. Messages in, messages out; a transport moves the bytes."""
