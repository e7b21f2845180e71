"""Temporal patterns (Stream Mill, section 5)."""
