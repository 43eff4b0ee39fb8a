"""The tools of an agent, whatever they are called through: `surehand mcp` serves them, `surehand call` runs them."""
