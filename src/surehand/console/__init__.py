"""The console page: its own process, a client of the daemon's control socket, for people in a browser (spec §11.5)."""
