"""Scenes as pure rules: identity, meaning, labels, fences, queries, text forms and diffs (spec §8)."""
