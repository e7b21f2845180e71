"""Punctuation generation: from what is known of a stream to what can no longer come."""
