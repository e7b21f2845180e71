"""Aggregate functions and the ways to compute them over windows."""
