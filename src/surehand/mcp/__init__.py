"""The MCP face: the tools of `surehand.tools` over the official SDK; its own process, a client of the daemon."""
