"""What runs: the gateway, sessions, scenes, recovery, desktops and the guard. `compose` does all wiring."""
