"""Operators that are snapshot-reducible: over events with lives, at every instant what relational algebra says."""
