"""Logical merge: one clean stream out of replicas that are physically different (LMerge)."""
