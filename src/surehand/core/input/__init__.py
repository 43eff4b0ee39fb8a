"""Keyboard and pointer input as pure data: names, chords, graphemes, plans, layouts and what is held."""
