"""Benchmarks: the same work by Penstock and by its peers, side by side in one run, as ratios with claims."""
