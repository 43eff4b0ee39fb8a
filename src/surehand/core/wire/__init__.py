"""The agent protocol without I/O: frames, messages, method names and where the sockets are (docs/reference/wire.md)."""
