"""Frozen records of spec §3: what travels between the layers. Bounded on construction; no I/O, no rules."""
