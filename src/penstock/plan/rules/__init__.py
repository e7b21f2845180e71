"""Rewrites of logical plans: one rule per file, each a pure function from a node to a node that may take its place."""
