"""The kinds of windows: `extent()`, `wids()` and the bucket operator's arithmetic."""
